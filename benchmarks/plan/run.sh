#!/usr/bin/env bash
# ./dev bench plan [--plans N] [--seed S] [OPTION..]: random plans, predicted and measured (random_plans.py).
# ./dev bench plan --speed: how long it takes to plan T5, BERT and the test models for four ranks.
# ./dev bench plan --devices: how long a forecast takes on up to 100,000 devices. $1: the folder of the build.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$1/benchmarks/plan
shift
if [[ ${1:-} == --devices ]]; then
  shift
  exec "$programs/forecast_bench" "$@"
fi
if [[ ${1:-} == --speed ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
  for model in t5 bert mlp operators resnet tagger transformer two_losses unet; do
    cache=() microbatch=64
    case $model in t5 | bert) cache=("--$model-cache" "$programs/${model}_cache") microbatch=2 ;; esac
    "$programs/models" --model $model "${cache[@]}" record --out . >/dev/null
    TRIREME_MEASURE=quick "$programs/models" --model $model "${cache[@]}" profile --ranks 4 --microbatch "$microbatch" >/dev/null
    "$programs/plan_speed" $model train.graph.json profile.json topology.json
  done
  exit
fi
exec "$here/../../.venv/bin/python" -B "$here/random_plans.py" "$programs" "$@"
