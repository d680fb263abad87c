#!/usr/bin/env bash
# ./dev bench data [images | tar] [OPTION..]: those of images_bench.py or tar_bench.py; both without a word, with the options
# that they share. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
benches=(images tar)
case ${1:-} in
  images | tar) benches=("$1") && shift ;;
esac
# Memory that is freed is kept, as a training process keeps it; without it peers pay for fresh pages in every call.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184
export PYTHONPATH=$build/python
for bench in "${benches[@]}"; do
  options=(--peers "$here/../../build/data/venv/bin/python")
  [[ $bench != images ]] || options+=(--program "$build/benchmarks/data/images_bench")
  "$here/../../.venv/bin/python" -B "$here/${bench}_bench.py" "${options[@]}" "$@"
done
