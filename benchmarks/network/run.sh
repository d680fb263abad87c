#!/usr/bin/env bash
# ./dev bench network [OPTION..]: collectives between hosts made on this machine, beside Gloo
# and Open MPI.
# TRIREME_HOSTS and TRIREME_RATE say how many hosts and how fast; options are those of
# `trireme bench wire`, but --ranks, which is the number of hosts.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
given=" $* "
hosts=${TRIREME_HOSTS:-4}
options=(--ranks "$hosts")

# add_default NAME VALUE: unless the option is given.
add_default() { [[ $given == *" $1"[\ =]* ]] || options+=("$1" "$2"); }

add_default --bytes 4KiB..16MiB
add_default --rounds 3
peers=()
for peer in gloo mpi; do [[ ! -x $build/benchmarks/peers/${peer}_peer ]] || peers+=("$peer"); done
((${#peers[@]} == 0)) || add_default --against "$(IFS=, && echo "${peers[*]}")"
# Beyond the loopback ranks meet with a secret only.
export TRIREME_TOKEN=${TRIREME_TOKEN:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
OMP_NUM_THREADS=1 exec bash "$here/hosts.sh" --hosts "$hosts" --rate "${TRIREME_RATE:-1gbit}" --once -- \
  "$build/cli/trireme-bench" wire --enter "ip netns exec {prefix}{rank}" --store-host "{host0}" \
  "${options[@]}" "$@"
