#!/usr/bin/env bash
# A Slurm of two nodes on this machine, and ranks that its srun starts there.
#
#   slurm.sh PROGRAM   the program rank_program, built
set -euo pipefail

name=clusters/slurm
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/hosts.sh"
need "slurm-wlm and munge" slurmctld slurmd srun sinfo munged
enter_namespaces "$0" "$@"

# Nothing of the machine's own Slurm, munge or cgroups is used.
write_configuration() {
  cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=control
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=5
SlurmdParameters=config_overrides
NodeName=node[1-2] CPUs=1 RealMemory=1000
PartitionName=all Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
  echo "CgroupPlugin=cgroup/v1" >cgroup.conf # else slurmd looks for one, and asks systemd; nothing uses it
  export SLURM_CONF=$folder/slurm.conf
}

start_slurm() {
  local node
  (umask 077 && head -c 128 /dev/urandom >munge.key)
  munged --force --key-file munge.key --socket "$folder/munge.socket" --pid-file "$folder/munge.pid" \
    --log-file "$folder/munged.log" --seed-file "$folder/munge.seed"
  mkdir state
  slurmctld -D 2>slurmctld.log &
  for node in "${nodes[@]}"; do
    mkdir "spool-$node"
    ./enter "$node" exec slurmd -D 2>"slurmd-$node.log" &
  done
}

wait_for_nodes() {
  local i
  for ((i = 0; i < 150; ++i)); do
    [[ $(sinfo -h -N -o %t 2>/dev/null | sort -u) != idle ]] || return 0
    sleep 0.2
  done
  fail "nodes do not come up"
}

options=(--model mlp train --batch 16 --microbatch 2 --lanes 2)
on_both=(timeout 60 srun -N2 -n2)

# train_on_both NAME OPTION VALUE [OPTION OF SRUN]
train_on_both() {
  "${on_both[@]}" ${4:-} "$program" "${options[@]}" --steps 40 "$2" "$3" --save "$1.weights" >"$1.log" 2>&1 || fail "$1"
  expect_same one.weights "$1.weights"
}

# Two ranks on two nodes against one process.
compare_with_one_process() {
  "$program" "${options[@]}" --steps 40 --save one.weights >one.log
  "${on_both[@]}" hostname | sort >names.log
  expect_same names.log <(printf '%s\n' "${nodes[@]}")
  train_on_both stages --stages 2
  train_on_both replicas --replicas 2
  train_on_both pmi --stages 2 --mpi=pmi2
  say "two stages, and two replicas, on two nodes have the bits of one process, with --mpi=pmi2 too"
}

refuse_without_token() {
  (unset TRIREME_TOKEN && ! "${on_both[@]}" "$program" "${options[@]}" --steps 1 >refused.log 2>&1) ||
    fail "no token, and no refusal"
  expect_in refused.log "no token is set, and other hosts reach 'node1'"
  say "without a token ranks of two nodes are refused"
}

# wait_until SECONDS COMMAND..
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "waited in vain for: $*"
    sleep 0.1
  done
}
has_checkpoint() { compgen -G 'run/checkpoints/step-[0-9]*[0-9]' >/dev/null; }
has_state() { [[ $(squeue -h -j "$1" -o %T) == "$2" ]]; }
has_ended() { [[ $(scontrol show job "$1") == *JobState=COMPLETED* ]]; }

# A node falls silent in the middle of a batch job of examples/08_clusters: the other one could go on alone, from
# the newest checkpoint; when it is back, Slurm starts the job again.
lose_a_node() {
  local job long=(--steps 3000 --checkpoint-every 100)
  "$program" "${options[@]}" --steps 3000 --save whole.weights >whole.log
  job=$(env -u TRIREME_TOKEN sbatch --parsable --nodes 2 --output batch.log "$here/../../examples/08_clusters/train.sbatch" \
    "$program" "${options[@]}" "${long[@]}" --run run --resume --save batch.weights)
  wait_until 30 has_checkpoint
  ip link set port-node2 down
  wait_until 120 has_state "$job" PENDING
  expect_in batch.log "rank 1 is lost"
  expect_in batch.log "Node failure on node2"
  expect_in run/topology-*.json '"name": "node2"'
  expect_in run/profile-*.json '"kind": "network"'
  say "a lost node ends the run: $(grep -o 'rank 1 is lost[^(]*' batch.log | head -n 1)"

  cp -r run alone
  timeout 60 srun -w node1 -N1 -n1 "$program" --model mlp train --run alone --resume --ranks 1 \
    --save alone.weights >alone.log 2>&1 || fail "resuming on the node that is left"
  expect_in alone.log "resuming from step"
  expect_same whole.weights alone.weights
  say "on the node that is left, $(grep -o 'resuming from step [0-9]*' alone.log): the same bits"

  ip link set port-node2 up
  scontrol update JobId="$job" StartTime=now # else it waits for two minutes
  wait_until 120 has_ended "$job"
  expect_in <(scontrol show job "$job") "Restarts=1"
  expect_same whole.weights batch.weights
  say "started again on both, $(grep -o 'resuming from step [0-9]*' batch.log): the same bits"
}

make_token
export OMP_NUM_THREADS=1
write_configuration
start_slurm
wait_for_nodes
say "$(slurmctld -V): two nodes are idle"
compare_with_one_process
refuse_without_token
lose_a_node
