#!/usr/bin/env bash
# ./dev bench engine [--checkpoints | --data-parallel | --evaluation | --large-model] [OPTION..]: those of engine_bench.py, or of that other one. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
bench=engine_bench.py
case ${1:-} in
  --checkpoints) bench=checkpoints_bench.py && shift ;;
  --evaluation) bench=evaluation_bench.py && shift ;;
  --data-parallel) bench=data_parallel_bench.py && shift ;;
  --large-model) bench=large_model_bench.py && shift ;;
esac
"$here/../../.venv/bin/python" -B "$here/$bench" "$build/cli/trireme" "$@"
