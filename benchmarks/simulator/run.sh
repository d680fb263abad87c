#!/usr/bin/env bash
# ./dev bench simulator: how far predicted steps are from published ones. Prints every split of runs.csv into
# runs that calibrate and runs that are judged, beside a linear fit on the same runs. Minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1/cli/trireme
runs=$here/runs.csv

judge() {
  printf '\n## trireme validate runs.csv'
  printf " '%s'" "$@"
  printf '\n\n```\n'
  "$program" validate "$runs" "$@"
  printf '```\n'
}

judge --calibrate 2104.04473 'Sept 2020@A100' vTrain --judge chronicles-prequel
judge --calibrate 2104.04473 'Sept 2020@A100' vTrain --judge 2205.05198 2201.11990 Launcher
judge --calibrate vTrain --judge 2104.04473
judge --calibrate 2104.04473 --judge vTrain
judge --calibrate llm-foundry@h100 --judge 'NeMo docs' torchtitan
judge --calibrate 'NeMo docs' torchtitan --judge llm-foundry@h100
judge --calibrate llm-foundry@h100 'NeMo docs' Bridge --judge dgxc training_results
judge --calibrate dgxc --judge Bridge training_results 'NeMo docs'
judge --calibrate Bridge --judge training_results dgxc
judge --calibrate llm-foundry@a100_40gb --judge llm-foundry@a100_80gb
judge --calibrate llm-foundry@a100_80gb --judge llm-foundry@a100_40gb
judge --leave-out group
judge --leave-out device
judge --leave-out fifth

printf '\n## Published layouts beside those that are found\n\n'
"$here/../../.venv/bin/python" -B "$here/layouts.py" "$program"
