#!/usr/bin/env bash
# ./dev bench engine [OPTION..]: those of engine_bench.py. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
"$here/../../.venv/bin/python" -B "$here/engine_bench.py" "$build/cli/trireme" "$@"
