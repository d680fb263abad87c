#!/usr/bin/env bash
# ./dev bench data: images_bench.py, then tar_bench.py. ./dev bench data images | tar [OPTION..]: one of them, with its
# options. ./dev bench data readers FOLDER [SIZE] [COUNT]: readers_bench. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
benches=(images tar)
# Memory that is freed is kept, as a training process keeps it; without it peers pay for fresh pages in every call.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184
if [[ ${1:-} == readers ]]; then
  exec "$build/benchmarks/data/readers_bench" "${@:2}"
fi
if (($#)); then
  [[ $1 == images || $1 == tar ]] || { echo "bench data: images, tar or readers, then options; got '$1'" >&2 && exit 2; }
  benches=("$1")
  shift
fi
export PYTHONPATH=$build/python
for bench in "${benches[@]}"; do
  options=(--peers "$here/../../build/data/venv/bin/python")
  [[ $bench != images ]] || options+=(--program "$build/benchmarks/data/images_bench")
  "$here/../../.venv/bin/python" -B "$here/${bench}_bench.py" "${options[@]}" "$@"
done
