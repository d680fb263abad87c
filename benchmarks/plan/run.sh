#!/usr/bin/env bash
# ./dev bench plan [--plans N] [--seed S] [OPTION..]: random plans, predicted and measured (random_plans.py).
# ./dev bench plan --devices: how long a forecast takes on up to 100,000 devices. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$1/benchmarks/plan
shift
if [[ ${1:-} == --devices ]]; then
  shift
  exec "$programs/forecast_bench" "$@"
fi
exec "$here/../../.venv/bin/python" -B "$here/random_plans.py" "$programs" "$@"
