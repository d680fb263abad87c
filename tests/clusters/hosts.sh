# Two hosts on this machine, for the tests of launchers. Sourced; $name is the test's.
#
# A test begins again in namespaces of its own (processes, mounts, host name, network), and whatever it
# started ends with them. A host is a network namespace and a host name, node1 or node2; a bridge is the switch.
# Files, processors and the kernel are shared: this is a network, not more machines.

export PATH=$PATH:/usr/sbin:/sbin
nodes=(node1 node2)

skip() {
  echo "[  SKIPPED ] $name: $1"
  exit 0
}

# need PACKAGES PROGRAM..
need() {
  local packages=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "no $program; install $packages"
  done
}

# enter_namespaces "$0" PROGRAM: returns inside, with $program and $folder.
enter_namespaces() {
  if [[ ${INSIDE_OF_CLUSTER:-} ]]; then
    program=$(realpath "$2") folder=$INSIDE_OF_CLUSTER
    make_hosts
    cd "$folder"
    return
  fi
  need "iproute2 and util-linux" ip unshare nsenter setpriv
  [[ $(id -u) == 0 ]] || skip "only root can make hosts with networks of their own"
  unshare --net --mount --pid --uts --fork --mount-proc true 2>/dev/null || skip "no namespaces may be made here"
  local status=0
  folder=$(mktemp -d)
  INSIDE_OF_CLUSTER=$folder setpriv --pdeathsig KILL \
    unshare --net --mount --pid --uts --fork --kill-child --mount-proc bash "$@" || status=$?
  rm -rf "$folder"
  exit "$status"
}

make_hosts() {
  local node number=10
  mount -t tmpfs none /run # for the names of networks
  hostname control
  ip link set lo up
  ip link add switch type bridge
  ip link set switch up
  ip address add 10.77.1.1/24 dev switch
  printf '127.0.0.1 localhost\n10.77.1.1 control\n' >"$folder/hosts"
  for node in "${nodes[@]}"; do
    number=$((number + 1))
    ip netns add "$node"
    ip link add "port-$node" type veth peer name eth0 netns "$node"
    ip link set "port-$node" master switch up
    ip -n "$node" link set lo up
    ip -n "$node" link set eth0 up
    ip -n "$node" address add "10.77.1.$number/24" dev eth0
    echo "10.77.1.$number $node" >>"$folder/hosts"
  done
  mount --bind "$folder/hosts" /etc/hosts
  write_enter
}

# limit_links RATE DELAY: of each host's link, in both directions, as tc writes them. Not every kernel can delay packets.
limit_links() {
  local node
  need iproute2 tc
  delayed=$2
  tc qdisc add dev lo root netem delay "$2" 2>/dev/null && tc qdisc del dev lo root || delayed=none
  for node in "${nodes[@]}"; do
    limit_link "$1" tc qdisc add dev "port-$node"
    limit_link "$1" tc -n "$node" qdisc add dev eth0
  done
}

# The delay goes before the rate: bytes in flight do not fill the queue of the limit.
limit_link() {
  local rate=$1
  shift
  if [[ $delayed == none ]]; then
    "$@" root tbf rate "$rate" burst 32768 latency 50ms
  else
    "$@" root handle 1: netem delay "$delayed" limit 10000
    "$@" parent 1: tbf rate "$rate" burst 32768 latency 50ms
  fi
}

# The program `enter HOST COMMAND`, which launchers take for ssh.
write_enter() {
  cat >"$folder/enter" <<'SH'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
node=$1
shift
exec nsenter --net="/run/netns/$node" unshare --uts bash -c "hostname $node && $*"
SH
  chmod 755 "$folder/enter"
}

# Beyond the loopback ranks meet with a secret only.
make_token() {
  TRIREME_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  export TRIREME_TOKEN
}

say() { echo "$name: $1 ($SECONDS s)"; }

fail() {
  say "FAILED: $1"
  tail -n 15 ./*.log >&2
  exit 1
}

# expect_in FILE TEXT
expect_in() { grep -qF -- "$2" "$1" || fail "$1 has no '$2'"; }

# expect_same FILE FILE: bit for bit.
expect_same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }
