#!/usr/bin/env bash
# ./dev bench python_pipeline [OPTION..]: those of python_pipeline_bench.py. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
PYTHONPATH=$build/python OMP_NUM_THREADS=1 "$here/../../.venv/bin/python" -B -m torch.distributed.run --nproc-per-node 2 \
  --log-dir "$build" "$here/python_pipeline_bench.py" "$@"
