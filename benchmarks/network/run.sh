#!/usr/bin/env bash
# ./dev bench network [OPTION..]: collectives between hosts made on this machine, beside Gloo.
# TRIREME_HOSTS and TRIREME_RATE say how many hosts and how fast; options are those of
# `trireme bench wire`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
hosts=${TRIREME_HOSTS:-4}
options=(--ranks "$hosts" --bytes 4KiB..16MiB --rounds 3)
[[ ! -x $build/benchmarks/peers/gloo_peer || " $* " == *" --against"* ]] || options+=(--against gloo)
# Words given by the user come last: the last --bytes counts.
OMP_NUM_THREADS=1 exec bash "$here/hosts.sh" --hosts "$hosts" --rate "${TRIREME_RATE:-1gbit}" --once -- \
  "$build/cli/trireme" bench wire --enter "ip netns exec {prefix}{rank}" --store-host "{host0}" \
  "${options[@]}" "$@"
