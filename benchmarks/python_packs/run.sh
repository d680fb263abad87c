#!/usr/bin/env bash
# ./dev bench python_packs [OPTION..]: those of python_packs_bench.py. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
# Memory that is freed is kept, as a training process keeps it; without it peers pay for fresh pages in every call.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184
PYTHONPATH=$build/python:$here/../kernels exec "$here/../../.venv/bin/python" -B "$here/python_packs_bench.py" "$@"
