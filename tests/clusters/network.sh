#!/usr/bin/env bash
# Training on two hosts of two ranks each, whose links have 100 Mbit/s, and 2 ms where the kernel can delay packets:
# the link between them is measured, plans know of it, sums go over it once a host, and weights have the bits of one
# process.
#
#   network.sh PROGRAM   the program rank_program, built
set -euo pipefail

name=clusters/network
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/hosts.sh"
enter_namespaces "$0" "$@"
ranks_per_host=2

# on_hosts LOG WORD..: `rank_program --model large WORD..` as each rank, with the variables that torchrun sets.
on_hosts() {
  local log=$1 node local_rank rank=0 pids=() pid
  shift
  for node in "${nodes[@]}"; do
    for ((local_rank = 0; local_rank < ranks_per_host; ++local_rank)); do
      timeout 150 ./enter "$node" env RANK="$rank" WORLD_SIZE=$((2 * ranks_per_host)) LOCAL_RANK="$local_rank" \
        LOCAL_WORLD_SIZE="$ranks_per_host" MASTER_ADDR=node1 MASTER_PORT=29600 \
        "'$program'" --model large "$@" >"$log-$rank.log" 2>&1 &
      pids+=($!)
      rank=$((rank + 1))
    done
  done
  for pid in "${pids[@]}"; do wait "$pid" || fail "$log"; done
}

# expect_within VALUE LEAST MOST WHAT
expect_within() {
  awk -v value="$1" -v least="$2" -v most="$3" 'BEGIN { exit !(value >= least && value <= most) }' ||
    fail "$4: $1, expected $2 to $3"
}

# MB/s of a kind of link, by the two largest messages of measured.json.
rate_of() {
  awk -v kind="\"$1\"" '
    /"kind":/ { is_kind = index($0, kind) }
    is_kind && match($0, /"alone_us": [0-9.e+]+/) {
      last_us = us; last_bytes = bytes
      us = substr($0, RSTART + 12, RLENGTH - 12)
      match($0, /"bytes": [0-9]+/); bytes = substr($0, RSTART + 9, RLENGTH - 9)
    }
    END { print (bytes - last_bytes) / (us - last_us) }' measured.json
}

# plan NAME OPTION..: makes NAME.json of what was measured; predicted_ms is its step.
plan() {
  local plan=$1
  shift
  "$program" --model large partition --profile measured.json --topology topology.json "${batch[@]}" "$@" \
    --out "$plan.json" >"$plan.log" 2>&1 || fail "the plan $plan"
  predicted_ms=$(grep -om 1 'step [0-9.]* ms' "$plan.log" | cut -d ' ' -f 2)
}

# Trains by the plan NAME, with the bits of one process; measured_ms is the median of its steps.
train() {
  on_hosts "$1-train" train "${steps[@]}" --plan "$1.json" --save "$1.weights"
  expect_same one.weights "$1.weights"
  measured_ms=$(grep -o 'median step [0-9.]* ms' "$1-train-0.log" | cut -d ' ' -f 3)
}

bytes_out_of_node1() { ip -s link show port-node1 | awk '/RX:/ { getline; print $1 }'; }

make_token
export OMP_NUM_THREADS=1
batch=(--batch 16 --lanes 4) steps=(--steps 3)
"$program" --model large train "${batch[@]}" --microbatch 4 "${steps[@]}" --save one.weights >one.log 2>&1 ||
  fail "one process"

limit_links 100mbit 2ms
began=$SECONDS
on_hosts profile profile --microbatch 4 --out measured.json --topology topology.json
expect_within $((SECONDS - began)) 0 60 "seconds of the profile"
network=$(rate_of network) host=$(rate_of host)
expect_within "$network" 9 12.6 "MB/s between hosts, of 12.5"
expect_within "$host" 60 100000 "MB/s within a host"
say "links with a delay of $delayed: $network MB/s between hosts, $host within one"

plan replicas --stages 1 --replicas 4
replicas_ms=$predicted_ms
plan chosen
expect_within "$predicted_ms" 0 "$(awk -v ms="$replicas_ms" 'BEGIN { print ms / 4 }')" "predicted ms of the chosen plan"
chosen_ms=$predicted_ms
train chosen
say "the chosen plan: $measured_ms ms a step, predicted $chosen_ms; the bits of one process"
chosen_ms=$measured_ms

before=$(bytes_out_of_node1)
train replicas
say "four replicas: $measured_ms ms a step, predicted $replicas_ms; the bits of one process"
expect_within "$measured_ms" "$(awk -v ms="$chosen_ms" 'BEGIN { print 2 * ms }')" 1000000 "ms a step of four replicas"
# 60 MiB of gradients: by algorithms that know nothing of hosts up to twice as much leaves each.
mib_a_step=$((($(bytes_out_of_node1) - before) / 3 / 1048576))
expect_within "$mib_a_step" 60 90 "MiB out of a host a step"
say "$mib_a_step MiB left each host a step"
