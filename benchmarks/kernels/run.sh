#!/usr/bin/env bash
# ./dev bench kernels [OPTION..]: those of `trireme bench kernels`. $1: the folder of the build.
set -euo pipefail
build=$1
shift
exec "$build/cli/trireme-bench" kernels "$@"
