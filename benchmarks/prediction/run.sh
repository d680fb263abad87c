#!/usr/bin/env bash
# ./dev bench prediction [RUNS]: how far predicted step times are from those of the training that follows.
# Trains the model of ./dev demo so many times (default 20), by four ranks and by two in turn; each
# run measures the machine and plans anew.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1/cli/trireme
runs=${2:-20}
[[ $runs =~ ^[1-9][0-9]*$ ]] || { echo "bench prediction: RUNS is 1 or more, not '$runs'" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
options=(
  --model t5 --t5-size demo --t5-cache "$folder/cache" --batch 16 --microbatch 1 --lanes 2
  --stages 2 --device-memory 96MiB
  --learning-rate 0.003 --warmup-steps 100 --decay inverse_sqrt
  --steps 16 --checkpoint-every 1000 --log-every 1000
)

for ((run = 1; run <= runs; ++run)); do
  "$program" train "${options[@]}" --run "$folder/$run" --ranks $((run % 2 ? 4 : 2)) >"$folder/out" 2>&1 ||
    { cat "$folder/out" >&2 && exit 1; }
done
python3 "$here/errors.py" "$folder"/[0-9]*
