#!/bin/sh
# The library exports the functions that the header declares and nothing else, and needs no torch.
#
#   exported_functions.sh LIBRARY HEADER
set -eu
library=$1
header=$2

declared=$(grep -o 'trireme_[a-z_]*(' "$header" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
if [ "$declared" != "$exported" ]; then
  printf 'declared in %s:\n%s\nexported by %s:\n%s\n' \
    "$header" "$declared" "$library" "$exported" >&2
  exit 1
fi
[ "$(printf '%s\n' "$declared" | wc -l)" -ge 30 ]

if readelf -d "$library" | grep NEEDED | grep -E 'torch|c10'; then
  echo "$library needs torch" >&2
  exit 1
fi
