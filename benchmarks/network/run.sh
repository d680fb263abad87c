#!/usr/bin/env bash
# ./dev bench network [OPTION..]: collectives between hosts made on this machine, beside Gloo
# and Open MPI.
# TRIREME_HOSTS, TRIREME_RANKS_PER_HOST (1) and TRIREME_RATE say how many hosts of how many ranks, and how fast;
# options are those of `trireme bench wire`, but --ranks, which follows. Open MPI is left out of hosts of several ranks.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
shift
given=" $* "
hosts=${TRIREME_HOSTS:-4}
per_host=${TRIREME_RANKS_PER_HOST:-1}
options=(--ranks $((hosts * per_host)))

# add_default NAME VALUE: unless the option is given.
add_default() { [[ $given == *" $1"[\ =]* ]] || options+=("$1" "$2"); }

add_default --bytes 4KiB..16MiB
add_default --rounds 3
peers=()
for peer in gloo mpi; do
  [[ $peer != mpi || $per_host == 1 ]] || continue
  [[ ! -x $build/benchmarks/peers/${peer}_peer ]] || peers+=("$peer")
done
((${#peers[@]} == 0)) || add_default --against "$(IFS=, && echo "${peers[*]}")"
# Beyond the loopback ranks meet with a secret only.
export TRIREME_TOKEN=${TRIREME_TOKEN:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
OMP_NUM_THREADS=1 exec bash "$here/hosts.sh" --hosts "$hosts" --rate "${TRIREME_RATE:-1gbit}" --once -- \
  "$build/cli/trireme-bench" wire --enter "bash $here/enter.sh {prefix} $per_host {rank}" --store-host "{host0}" \
  "${options[@]}" "$@"
