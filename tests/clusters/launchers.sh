#!/usr/bin/env bash
# Ranks on two hosts that torchrun, Open MPI's mpirun and MPICH's mpiexec start, each where it is installed; and
# those that Kubernetes would start: by hand, with the variables and names of the manifests in examples/08_clusters.
#
#   launchers.sh PROGRAM PYTHON PACKAGE   the program rank_program, built; a Python that may have torch; the folder
#                                         that may hold the package `trireme`
set -euo pipefail

name=clusters/launchers
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/hosts.sh"
enter_namespaces "$0" "$@"
python=$2 package=$3

options=(--model mlp train --batch 16 --microbatch 2 --lanes 2)

# compare LAUNCHER: its ranks have written their weights.
compare() {
  expect_same one.weights "$1.weights"
  say "two stages on two hosts, by $1, have the bits of one process"
}

skip_part() { echo "[  SKIPPED ] $name: $1"; }

# torchrun LOG WORD..: an agent of torchrun on each host.
torchrun() {
  local log=$1 node index=0 pids=() pid
  shift
  for node in "${nodes[@]}"; do
    timeout 100 ./enter "$node" "'$python'" -m torch.distributed.run --nnodes 2 --node-rank "$index" \
      --master-addr node1 --master-port 29500 "$@" >"$log-$node.log" 2>&1 &
    pids+=($!)
    index=$((index + 1))
  done
  for pid in "${pids[@]}"; do wait "$pid" || fail "torchrun"; done
}

try_torchrun() {
  if ! "$python" -c 'import torch.distributed' 2>/dev/null; then
    skip_part "torchrun: $python cannot import torch"
    return
  fi
  torchrun torchrun --no-python -- "'$program'" "${options[@]}" --steps 40 --stages 2 --save torchrun.weights
  compare torchrun
}

# An elastic torchrun loses a host: the agent that is left starts its rank again, alone, and it goes on.
lose_a_host_of_torchrun() {
  local node agents=() long=("${options[@]}" --steps 6000)
  "$python" -c 'import torch.distributed' 2>/dev/null || return 0
  "$program" "${long[@]}" --save long.weights >long.log
  for node in "${nodes[@]}"; do
    timeout 150 ./enter "$node" "'$python'" -m torch.distributed.run --nnodes 1:2 --max-restarts 3 \
      --rdzv-backend c10d --rdzv-endpoint node1:29500 --rdzv-id test --local-addr "$node" \
      --no-python -- "'$program'" "${long[@]}" --run run --resume --checkpoint-every 100 \
      --save elastic.weights >"elastic-$node.log" 2>&1 &
    agents+=($!)
  done
  while ! compgen -G 'run/checkpoints/step-[0-9]*[0-9]' >/dev/null; do
    kill -0 "${agents[0]}" 2>/dev/null || fail "elastic torchrun ended before its first checkpoint"
    sleep 0.1
  done
  ip link set port-node2 down
  wait "${agents[0]}" || fail "elastic torchrun"
  ip link set port-node2 up
  expect_in elastic-node1.log "rank 1 is lost"
  expect_in elastic-node1.log "1 stages x 1 replicas"
  expect_same long.weights elastic.weights
  say "torchrun lost a host, $(grep -o 'resuming from step [0-9]*' elastic-node1.log) on the other: the same bits"
}

# A program in Python that begins two ranks here, or is one of two.
try_python() {
  local example=$here/../../examples/06_session_from_python/language_model.py
  export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1
  if ! "$python" -c 'import trireme' 2>/dev/null; then
    skip_part "torchrun from Python: $python cannot import trireme"
    return
  fi
  mkdir here there
  timeout 100 "$python" "$example" here >here.log 2>&1 || fail "the example on one host"
  torchrun python -- "'$example'" there
  expect_same here/weights.safetensors there/weights.safetensors
  say "two ranks of a Python program on two hosts, by torchrun, have the bits of two on one host"
}

try_open_mpi() {
  if ! command -v mpirun.openmpi >/dev/null; then
    skip_part "mpirun: Open MPI is not installed (openmpi-bin)"
    return
  fi
  timeout 60 mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$folder/enter" --host node1,node2 -n 2 \
    -x TRIREME_TOKEN -x TRIREME_STORE=node1:29501 \
    "$program" "${options[@]}" --steps 40 --stages 2 --save mpirun.weights >mpirun.log 2>&1 || fail "mpirun"
  compare mpirun
}

try_mpich() {
  if ! command -v mpiexec.hydra >/dev/null; then
    skip_part "mpiexec: MPICH is not installed (mpich)"
    return
  fi
  TRIREME_STORE=node1:29502 timeout 60 mpiexec.hydra -launcher ssh -launcher-exec "$folder/enter" \
    -hosts node1,node2 -ppn 1 -n 2 \
    "$program" "${options[@]}" --steps 40 --stages 2 --save mpiexec.weights >mpiexec.log 2>&1 || fail "mpiexec"
  compare mpiexec
}

# The manifests' pods, one on each host.
try_manifests() {
  local kind index pids pid manifests
  manifests=$here/manifests.py
  if ! "$python" -c 'import yaml' 2>/dev/null; then
    skip_part "manifests: $python has no PyYAML"
    return
  fi
  echo "10.77.1.11 t5-0.t5 t5-ranks-0-0.t5 t5-master-0" >>hosts
  for kind in indexed_job jobset pytorchjob; do
    pids=()
    for index in 0 1; do
      "$python" -B "$manifests" "$kind.yaml" "$index" >"$kind-$index.variables"
      timeout 60 ./enter "${nodes[index]}" env "$(tr '\n' ' ' <"$kind-$index.variables")" \
        "'$program'" "${options[@]}" --steps 40 --stages 2 --save "$kind.weights" >"$kind-$index.log" 2>&1 &
      pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || fail "pods of $kind.yaml"; done
    compare "$kind"
  done
}

make_token
export OMP_NUM_THREADS=1
"$program" "${options[@]}" --steps 40 --save one.weights >one.log
try_torchrun
try_python
try_open_mpi
try_mpich
try_manifests
lose_a_host_of_torchrun
