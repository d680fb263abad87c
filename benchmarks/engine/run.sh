#!/usr/bin/env bash
# ./dev bench engine [--checkpoints] [OPTION..]: those of engine_bench.py, or of checkpoints_bench.py. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
bench=engine_bench.py
if [[ ${1:-} == --checkpoints ]]; then
  bench=checkpoints_bench.py
  shift
fi
"$here/../../.venv/bin/python" -B "$here/$bench" "$build/cli/trireme" "$@"
