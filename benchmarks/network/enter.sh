#!/usr/bin/env bash
# enter.sh PREFIX RANKS_PER_HOST RANK COMMAND [ARGUMENT..]: runs the command on the rank's host, one of those of
# hosts.sh, whose names begin with PREFIX.
set -euo pipefail
exec ip netns exec "$1$(($3 / $2))" "${@:4}"
