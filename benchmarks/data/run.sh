#!/usr/bin/env bash
# ./dev bench data [OPTION..]: those of images_bench.py. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
# Memory that is freed is kept, as a training process keeps it; without it peers pay for fresh pages in every call.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184
exec "$here/../../.venv/bin/python" -B "$here/images_bench.py" --program "$build/benchmarks/data/images_bench" "$@"
