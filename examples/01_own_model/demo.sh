#!/usr/bin/env bash
# Shows every verb on the example. Usage: demo.sh PROGRAM [FOLDER]
set -euo pipefail
program=$(realpath "$1")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"

say() { printf '\n\033[1m$ own_model %s\033[0m\n' "$*"; "$program" "$@"; }

say record --out .
say show train.graph.json
say profile --ranks 2 --microbatch 16
say partition --graph train.graph.json --profile profile.json --stages 2 --batch 64 --lanes 2
say simulate --timeline timeline.json
say train --plan plan.json --steps 600 --log-every 200 --save weights.safetensors
say verify --stages 2 --replicas 2 --schedule interleaved --batch 64 --microbatch 16 --lanes 2
printf '\nfiles are in %s\n' "$folder"
