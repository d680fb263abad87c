#!/usr/bin/env bash
# A T5 that does not fit into the memory of one rank: planned, trained on real text, killed half-way,
# resumed on two ranks and again on four, and compared with a run that nobody disturbed.
# Usage: demo.sh PROGRAM [FOLDER]; without FOLDER it makes a temporary one. Either stays.
set -euo pipefail
program=$(realpath "$1")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(realpath "$folder")
cd "$folder"

for run in run undisturbed; do
  [[ ! -e $run ]] || { echo "demo: $folder has a $run already; name another folder" >&2; exit 2; }
done

steps=80 # x 8 samples x 141 tokens
kill_at=41
resumed=50  # on two ranks up to here
compared=60 # 19 steps after the kill; one of the last 4 checkpoints of both runs
# Parameters, gradients and AdamW's state of its 6.6 million parameters take 101 MiB.
options=(
  --model t5 --t5-size demo --t5-held-out 0.005 --t5-cache cache --batch 8 --microbatch 1 --lanes 2
  --stages 2 --device-memory 96MiB
  --learning-rate 0.003 --warmup-steps 50 --decay inverse_sqrt
  --checkpoint-every 10 --keep-last 4 --log-every 10
)

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

train() {
  printf '\033[1m$ trireme train %s\033[0m\n' "${options[*]} $*"
  exec "$program" train "${options[@]}" "$@"
}

# Whether a run has done so many steps.
has_done() { grep -qs "\"step\":$(($2 - 1)),\"step_ms\"" "$1/metrics.jsonl"; }

# Losses of held-out text, in the order in which they were measured.
held_out() { sed -n 's/.*"evaluation".*"loss":\([0-9.]*\)}.*/\1/p' "$1/metrics.jsonl"; }

say "1. Four ranks measure the model, plan and train, until they are killed after step $kill_at"
(train --run run --ranks 4 --steps $steps) &
trainer=$!
until has_done run $kill_at; do
  kill -0 $trainer 2>/dev/null || { wait $trainer || exit; }
  sleep 0.05
done
kill -9 $trainer
wait $trainer 2>/dev/null || true
say "   killed -9. It left $(ls run/checkpoints | grep -c '^step-[0-9]*$') checkpoints, the last: $(cat run/checkpoints/latest)"

say "2. Two ranks resume, to step $resumed, under a plan of their own"
(train --run run --ranks 2 --steps $resumed --resume)

say "3. Four ranks again, to the end"
(train --run run --ranks 4 --steps $steps --resume)

say "4. The same run without the kill, to step $compared"
(train --run undisturbed --ranks 4 --steps $compared \
  --profile run/profile-4.json --topology run/topology-4.json) | tail -n 3

say "5. The weights after step $compared of both"
for run in run undisturbed; do
  "$program" export $run/checkpoints/step-$compared --out $run/step-$compared.safetensors
done
if ! cmp run/step-$compared.safetensors undisturbed/step-$compared.safetensors; then
  echo "the weights differ" >&2
  exit 1
fi
echo "the same bits: $(sha256sum <run/step-$compared.safetensors | cut -c1-16)..."
rm -r {run,undisturbed}/step-$compared.safetensors undisturbed/checkpoints

say "6. What it came to"
"$program" show run/run.json
before=$(held_out run | sed -n 1p)
after=$(held_out run | tail -n 1)
awk -v before="$before" -v after="$after" 'BEGIN {
  printf "held-out loss %.3f before, %.3f after: %.0f %% lower\n", before, after, 100 * (1 - after / before)
  exit after > 0.75 * before
}' || { echo "it should have fallen by 25 %" >&2; exit 1; }
"$program" report run
cat <<TEXT

checkpoint  $folder/run/checkpoints/step-$steps
timeline    $folder/run/timeline-3.json (predicted and measured; open it in a trace viewer)
report      $folder/run/report.html
examples    $folder/run/examples.txt
all of it   $folder ($(du -sh . | cut -f1)); remove it when you have seen it
TEXT
