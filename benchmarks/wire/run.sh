#!/usr/bin/env bash
# ./dev bench wire [OPTION..]: every collective at every size on this host, beside the peers that
# were built. Options are those of `trireme bench wire`.
set -euo pipefail

build=$1
shift
peers=()
for peer in gloo mpi; do
  if [[ -x $build/benchmarks/peers/${peer}_peer ]]; then
    peers+=("$peer")
  else
    echo "no $peer to compare with: docs/dependencies.md names its packages" >&2
  fi
done
against=()
if ((${#peers[@]})) && [[ " $* " != *" --against"* ]]; then
  against=(--against "$(IFS=, && echo "${peers[*]}")")
fi
OMP_NUM_THREADS=1 exec "$build/cli/trireme-bench" wire "${against[@]}" "$@"
