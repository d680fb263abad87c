#!/usr/bin/env bash
# Shows every verb on the example. Usage: demo.sh PROGRAM [FOLDER]
set -euo pipefail
program=$1
folder=${2:-$(mktemp -d)}

say() { printf '\n\033[1m$ own_model %s\033[0m\n' "$*"; "$program" "$@"; }

say record --out "$folder"
say show graph "$folder/train.graph.json"
say partition --graph "$folder/train.graph.json" --cut-at norm/relu --batch 64 --microbatch 16 \
  --lanes 2 --out "$folder/plan.json"
say verify --plan "$folder/plan.json" --steps 20 --optimizer sgd --learning-rate 0.05
say train --plan "$folder/plan.json" --steps 600 --log-every 100 --save "$folder/weights.safetensors"
printf '\nfiles are in %s\n' "$folder"
