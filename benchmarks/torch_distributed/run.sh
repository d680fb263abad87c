#!/usr/bin/env bash
# ./dev bench torch_distributed [collectives|steps] [OPTION..]: through torch.distributed, beside Gloo.
# Both, where neither is named. Options: --ranks N.., --rounds N.
set -euo pipefail

build=$1
shift
folder=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$folder/../.." && pwd)
programs=(collectives steps)
if [[ ${1:-} == collectives || ${1:-} == steps ]]; then
  programs=("$1")
  shift
fi
for program in "${programs[@]}"; do
  PYTHONPATH=$build/python OMP_NUM_THREADS=1 "$root/.venv/bin/python" -B "$folder/$program.py" "$@"
done
