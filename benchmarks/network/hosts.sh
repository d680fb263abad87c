#!/usr/bin/env bash
# Makes hosts on this machine, runs a command in each, and takes them away again.
#
# A host is a network namespace with one interface, eth0, at a rate of its own in each direction; a
# bridge is the switch. Files and processors are shared: this is a network, not more machines.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: hosts.sh [OPTION..] -- COMMAND [ARGUMENT..]

  --hosts N      how many (default 2, at most 64)
  --rate RATE    of each host's interface, as tc writes it (default 1gbit)
  --burst BYTES  of the rate limit, at most 65536 (default 65536)
  --gso BYTES    largest packet that a host hands to its interface (default 32000)
  --once         run COMMAND once, outside, instead of once in each host

Each run of COMMAND gets RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (rank 0 serves the store there)
and GLOO_SOCKET_IFNAME. In its words {rank}, {prefix}, {host0} become the rank, what the names of
the namespaces begin with (the rank follows), and the address of host 0; with --once {rank} stays.

Prints the goodput measured between two hosts, and the bytes that each interface carried.
Needs root, iproute2 and python3.

example: hosts.sh --hosts 2 --rate 1gbit -- trireme --model t5 train --stages 2
TEXT
}

fail() {
  echo "hosts.sh: $1" >&2
  exit "${2:-2}"
}

hosts=2 rate=1gbit burst=65536 gso=32000 once=
while (($#)); do
  case $1 in
    --hosts) hosts=${2:-} && shift 2 ;;
    --rate) rate=${2:-} && shift 2 ;;
    --burst) burst=${2:-} && shift 2 ;;
    --gso) gso=${2:-} && shift 2 ;;
    --once) once=1 && shift ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    *) fail "unknown option $1; see --help" ;;
  esac
done
[[ $hosts =~ ^[0-9]+$ ]] && ((hosts >= 2 && hosts <= 64)) || fail "--hosts is from 2 to 64"
[[ $burst =~ ^[0-9]+$ ]] && ((burst >= 1600 && burst <= 65536)) || fail "--burst is from 1600 to 65536"
[[ $gso =~ ^[0-9]+$ ]] && ((gso >= 1600 && gso <= 65536)) || fail "--gso is from 1600 to 65536"
(($#)) || fail "which command? see --help"
[[ $(id -u) == 0 ]] || fail "only root can make network namespaces; run it with sudo"
for program in ip tc python3; do
  command -v "$program" >/dev/null || fail "no $program; install iproute2 and python3"
done

# Names with the process id: two runs do not meet. An interface's name has at most 15 characters.
prefix=tr$$-
bridge=tr$$b
pids=()

address() { echo "10.77.0.$(($1 + 1))"; }
in_host() {
  local rank=$1
  shift
  ip netns exec "$prefix$rank" "$@"
}

clean_up() {
  local status=$? rank pid
  trap - EXIT INT TERM HUP
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  for ((rank = 0; rank < hosts; ++rank)); do
    ip netns del "$prefix$rank" 2>/dev/null || true
    ip link del "tr$$v$rank" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The rate of eth0 is that of sending; that of the switch's port is that of receiving.
limit() { tc "$@" root tbf rate "$rate" burst "$burst" latency 50ms; }

make_host() {
  local rank=$1 port=tr$$v$1
  ip netns add "$prefix$rank"
  ip link add "$port" type veth peer name eth0 netns "$prefix$rank"
  ip link set "$port" master "$bridge" gso_max_size "$gso" up
  ip -n "$prefix$rank" link set lo up
  ip -n "$prefix$rank" link set eth0 gso_max_size "$gso" up
  ip -n "$prefix$rank" addr add "$(address "$rank")/24" dev eth0
  limit qdisc add dev "$port"
  limit -n "$prefix$rank" qdisc add dev eth0
}

# One number per host: bytes that its eth0 has sent or received (tx_bytes, rx_bytes).
counters() {
  local rank
  for ((rank = 0; rank < hosts; ++rank)); do
    in_host "$rank" cat "/sys/class/net/eth0/statistics/$1"
  done
}

# Bytes a second from host 0 to host 1 over one connection, for 2 s.
measure_goodput() {
  in_host 1 timeout 20 python3 -c "$receiver" &
  pids+=($!)
  in_host 0 timeout 20 python3 -c "$sender" "$(address 1)"
  wait "${pids[-1]}"
  unset 'pids[-1]'
}
receiver='
import socket, time
server = socket.create_server(("", 5001))
server.settimeout(10)
connection = server.accept()[0]
connection.settimeout(10)
total, begin = 0, time.monotonic()
while data := connection.recv(1 << 20):
    total += len(data)
seconds = time.monotonic() - begin
print(f"goodput from host 0 to host 1: {total / seconds / 1e6:.1f} MB/s")
'
sender='
import socket, sys, time
deadline = time.monotonic() + 10
while True:
    try:
        connection = socket.create_connection((sys.argv[1], 5001), 1)
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
end = time.monotonic() + 2
while time.monotonic() < end:
    connection.sendall(bytes(1 << 18))
connection.close()
'

# The command in words, for a rank; {rank} stays where that is empty.
words_for() {
  local rank=$1 word
  shift
  words=()
  for word in "$@"; do
    word=${word//\{prefix\}/$prefix}
    word=${word//\{host0\}/$(address 0)}
    [[ -z $rank ]] || word=${word//\{rank\}/$rank}
    words+=("$word")
  done
}

run_in_each() {
  local rank status=0 pid
  local port=$((20000 + $$ % 20000))
  for ((rank = 0; rank < hosts; ++rank)); do
    words_for "$rank" "$@"
    in_host "$rank" env RANK="$rank" WORLD_SIZE="$hosts" MASTER_ADDR="$(address 0)" \
      MASTER_PORT="$port" GLOO_SOCKET_IFNAME=eth0 "${words[@]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  pids=()
  return "$status"
}

# In the background, so that a signal does not have to wait for it.
run_once() {
  local status=0
  words_for "" "$@"
  GLOO_SOCKET_IFNAME=eth0 "${words[@]}" &
  pids+=($!)
  wait "${pids[-1]}" || status=$?
  pids=()
  return "$status"
}

ip link add "$bridge" type bridge
ip link set "$bridge" up
for ((rank = 0; rank < hosts; ++rank)); do make_host "$rank"; done
echo "$hosts hosts of $rate each way, burst $burst, packets up to $gso bytes"
measure_goodput

mapfile -t sent_before < <(counters tx_bytes)
mapfile -t received_before < <(counters rx_bytes)
status=0
if [[ $once ]]; then run_once "$@" || status=$?; else run_in_each "$@" || status=$?; fi
mapfile -t sent < <(counters tx_bytes)
mapfile -t received < <(counters rx_bytes)
for ((rank = 0; rank < hosts; ++rank)); do
  echo "host $rank: sent ${sent_before[rank]} -> ${sent[rank]}" \
    "(+$((sent[rank] - sent_before[rank]))), received ${received_before[rank]} ->" \
    "${received[rank]} (+$((received[rank] - received_before[rank]))) bytes"
done
exit "$status"
