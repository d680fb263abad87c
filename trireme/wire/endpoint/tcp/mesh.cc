#include "trireme/wire/endpoint/tcp/mesh.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/endpoint/tcp/frame_io.h"
#include "trireme/wire/endpoint/watch.h"
#include "trireme/wire/system/byte_form.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kCheckEvery{50};  // how often the store is asked who is lost

std::uint64_t random_id() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace

TcpMesh::TcpMesh(const TcpOptions& options, std::string fabric)
    : options_(options),
      deadline_(Clock::now() + options.deadline),
      local_mesh_({.store = options.store,
                   .rank = options.rank,
                   .deadline = deadline_,
                   .shares_memory = options.shares_memory,
                   .logger = options.logger}),
      fabric_(std::move(fabric)),
      sockets_(options.world_size) {}

void TcpMesh::connect() {
  try {
    agree_on_size();
    claim_rank();
    publish();
    meet();
    for (int peer = 0; peer < options_.rank; ++peer) connect_to_rank(peer);
    accept_others();
    local_sockets_ = local_mesh_.connect(world_id_, hosts_);
  } catch (const Error& error) {
    tell_connected(error);
    throw;
  }
}

/// The first rank says how many they are. Who disagrees ends the start of all, with the same text.
void TcpMesh::agree_on_size() {
  const std::string mine =
      std::to_string(options_.world_size) + " " + std::to_string(options_.rank);
  const std::string first = options_.store.set_once(key("size"), mine);
  if (first.substr(0, first.find(' ')) == mine.substr(0, mine.find(' '))) return;
  const int peer = std::stoi(first.substr(first.find(' ') + 1));
  Error wrong = wrong_size(peer, std::stoi(first));
  options_.store.fail(wrong);
  throw Error(wrong.add({.rank = options_.rank}));
}

/// Of two processes with one rank the second one ends the start of all, naming the rank.
void TcpMesh::claim_rank() {
  const std::string rank = std::to_string(options_.rank);
  const std::string claim = std::to_string(random_id());
  if (options_.store.set_once(key("claim/" + rank), claim) == claim) return;
  fail_for_all(Error(ErrorKind::kInvalidArgument, "two processes were started as rank " + rank +
                                                      " of " + std::to_string(options_.world_size) +
                                                      "; give each a rank of its own"));
}

void TcpMesh::publish() {
  const std::string& host = options_.host;
  const std::string own = host.empty() ? options_.store.local_host() : host;
  check_may_listen(options_.store.token(), own);
  listener_ = listen_on({own, 0});
  const auto interface = interface_of_host(local_address(listener_).host);
  if (interface) megabits_ = megabits_of_interface(*interface);
  const std::string rank = std::to_string(options_.rank);
  std::vector<std::pair<std::string, std::string>> entries = {
      {key("address/" + rank),
       to_text(local_address(listener_)) + (fabric_.empty() ? "" : " " + fabric_)},
      {key("host/" + rank), local_mesh_.publication()}};
  if (options_.rank == 0) entries.emplace_back(key("id"), std::to_string(random_id()));
  options_.store.set_many(entries);
}

/// Learns where all ranks are.
void TcpMesh::meet() {
  const int size = options_.world_size;
  std::vector<std::string> keys = {key("id")};
  for (const char* what : {"address/", "host/"}) {
    for (int rank = 0; rank < size; ++rank) keys.push_back(key(what + std::to_string(rank)));
  }
  try {
    const std::vector<std::string> values = options_.store.get_many(keys, time_left());
    world_id_ = std::stoull(values.front());
    for (int rank = 0; rank < size; ++rank) take_address(values[1 + rank]);
    hosts_.assign(values.begin() + 1 + size, values.end());
    check_same_fabric();
    check_reachable();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTimeout || Clock::now() < deadline_) throw;  // another's
    const std::vector<int> late = not_published();
    if (!late.empty()) fail_late(late);
    options_.store.check();  // it may be the error of another rank
    throw;
  }
}

std::vector<int> TcpMesh::not_published() const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    keys.push_back(key("address/" + std::to_string(rank)));
  }
  const std::vector<std::string> absent = options_.store.missing(keys);
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (std::find(absent.begin(), absent.end(), keys[rank]) != absent.end()) ranks.push_back(rank);
  }
  return ranks;
}

void TcpMesh::take_address(const std::string& published) {
  const std::size_t end = std::min(published.find(' '), published.size());
  addresses_.push_back(parse_address(published.substr(0, end)));
  const std::string fabric = end == published.size() ? "tcp " : published.substr(end + 1);
  const std::size_t split = std::min(fabric.find(' '), fabric.size() - 1);
  fabrics_.push_back(fabric.substr(0, split));
  fabric_addresses_.push_back(fabric.substr(split + 1));
}

/// All ranks find the same, since all see the same.
void TcpMesh::check_same_fabric() const {
  for (int rank = 1; rank < options_.world_size; ++rank) {
    if (fabrics_[rank] == fabrics_[0]) continue;
    Error error(ErrorKind::kInvalidArgument,
                "rank 0 moves messages by " + fabrics_[0] + ", rank " + std::to_string(rank) +
                    " by " + fabrics_[rank] +
                    "; set TRIREME_TRANSPORT and TRIREME_OFI_PROVIDER to the same on all ranks");
    options_.store.fail(error);  // or those that ask later hear of a lost rank only
    throw Error(error.add({.rank = options_.rank, .operation = "start"}));
  }
}

/// A loopback address is of use only where all ranks have one.
void TcpMesh::check_reachable() const {
  const Address& mine = addresses_[options_.rank];
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const Address& theirs = addresses_[rank];
    if (is_loopback(theirs.host) == is_loopback(mine.host)) continue;
    const bool is_mine = is_loopback(mine.host);
    const int local = is_mine ? options_.rank : rank;
    Error error(
        ErrorKind::kInvalidArgument,
        "rank " + std::to_string(local) + " listens on " + to_text(is_mine ? mine : theirs) +
            (is_mine ? " (interface " + interface_of_host(mine.host).value_or("unknown") + ")"
                     : "") +
            ", which other hosts cannot reach, and rank " +
            std::to_string(is_mine ? rank : options_.rank) + " on " +
            to_text(is_mine ? theirs : mine) + "; set TRIREME_INTERFACE or TRIREME_HOST " +
            "for rank " + std::to_string(local));
    throw Error(error.add({.rank = options_.rank, .peer = rank, .operation = "start"}));
  }
}

// ---- Ranks below

void TcpMesh::connect_to_rank(int peer) {
  Descriptor socket = open_connection(peer);
  const HelloBytes hello = to_bytes(
      Hello{.world_id = world_id_, .rank = options_.rank, .world_size = options_.world_size});
  if (write_some(socket, hello) != hello.size()) fail_lost(peer);
  const Hello theirs = read_answer(peer, socket);
  if (theirs.world_size != options_.world_size) throw wrong_size(peer, theirs.world_size);
  if (theirs.welcome != Welcome::kYes || theirs.rank != peer || theirs.world_id != world_id_) {
    Error refused(ErrorKind::kInvalidArgument,
                  "rank " + std::to_string(peer) + " does not take this process for rank " +
                      std::to_string(options_.rank) + " of its world; was a rank started twice?");
    throw Error(refused.add({.rank = options_.rank, .peer = peer}));
  }
  adopt(peer, std::move(socket));
}

/// A connection on which both sides have proved that they belong to the job.
Descriptor TcpMesh::open_connection(int peer) {
  std::optional<Descriptor> socket =
      enter_with_retries([&] { return connect_once(peer); }, options_.store.token(), "rank",
                         "rank " + std::to_string(peer),
                         [this](const Descriptor& waiting) { wait_for_answer(waiting); });
  if (!socket) fail_lost(peer);
  return std::move(*socket);
}

void TcpMesh::wait_for_answer(const Descriptor& socket) {
  while (!wait_readable(socket, Clock::now() + kCheckEvery)) check_in_time();
}

Descriptor TcpMesh::connect_once(int peer) {
  const Address& address = addresses_[peer];
  while (true) {
    check_in_time();
    try {
      return connect_to(address, {.deadline = std::min(time_left(), milliseconds(500))});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
    }
  }
}

Hello TcpMesh::read_answer(int peer, const Descriptor& socket) {
  HelloBytes bytes{};
  std::span<std::byte> rest(bytes);
  while (!rest.empty()) {
    wait_for_answer(socket);
    const auto count = read_some(socket, rest);
    if (!count) fail_lost(peer);
    rest = rest.subspan(*count);
  }
  return parse_hello(bytes);
}

// ---- Ranks above

void TcpMesh::accept_others() {
  Gate gate(std::move(listener_), poller_,
            {.token = options_.store.token(), .door = "rank", .logger = options_.logger});
  while (!missing().empty()) {
    const Deadline next = std::min(Clock::now() + kCheckEvery, gate.next_deadline());
    for (const Poller::Event& event : poller_.wait(next)) {
      if (Gate::is_id(event.id)) {
        if (std::optional<Descriptor> socket = gate.serve(event)) welcome(std::move(*socket));
      } else if (!hear(newcomers_.at(event.id))) {
        newcomers_.erase(event.id);
      }
    }
    gate.expire();
    check_in_time();
  }
}

void TcpMesh::welcome(Descriptor socket) {
  const std::uint64_t id = ++last_id_;
  poller_.add(socket, id);
  newcomers_[id].socket = std::move(socket);
}

/// Reads on; whether to keep the newcomer.
bool TcpMesh::hear(Newcomer& newcomer) {
  const auto count =
      read_some(newcomer.socket, std::span(newcomer.bytes).subspan(newcomer.num_bytes));
  if (!count) return false;
  newcomer.num_bytes += *count;
  if (newcomer.num_bytes < newcomer.bytes.size()) return true;
  Hello hello;
  try {
    hello = parse_hello(newcomer.bytes);
  } catch (const Error&) {  // not one of us: nobody is waiting for an answer
    return false;
  }
  answer(newcomer, hello);
  return false;
}

void TcpMesh::answer(Newcomer& newcomer, const Hello& hello) {
  const Welcome welcome = judge(hello);
  const HelloBytes bytes = to_bytes(Hello{.welcome = welcome,
                                          .world_id = world_id_,
                                          .rank = options_.rank,
                                          .world_size = options_.world_size});
  const auto count = write_some(newcomer.socket, bytes);
  if (welcome == Welcome::kWrongSize) throw wrong_size(hello.rank, hello.world_size);
  if (welcome != Welcome::kYes || count != bytes.size()) return;
  poller_.remove(newcomer.socket);
  adopt(hello.rank, std::move(newcomer.socket));
}

Welcome TcpMesh::judge(const Hello& hello) {
  if (hello.welcome != Welcome::kHello || hello.world_id != world_id_) return Welcome::kWrongWorld;
  if (hello.world_size != options_.world_size) return Welcome::kWrongSize;
  if (hello.rank <= options_.rank || hello.rank >= options_.world_size ||
      sockets_[hello.rank].is_open()) {
    return Welcome::kWrongRank;
  }
  return Welcome::kYes;
}

// ---- Both

void TcpMesh::adopt(int peer, Descriptor socket) {
  set_options_of_connection(socket);
  if (options_.socket_buffer_bytes > 0) {
    set_buffer_size(socket, options_.socket_buffer_bytes);
  } else if (addresses_[peer].host != addresses_[options_.rank].host) {
    if (const int window = shared_window(options_.world_size, megabits_)) {
      set_buffer_size(socket, window);
    }
  }
  sockets_[peer] = std::move(socket);
}

std::vector<int> TcpMesh::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < options_.world_size; ++peer) {
    if (peer != options_.rank && !sockets_[peer].is_open()) ranks.push_back(peer);
  }
  return ranks;
}

milliseconds TcpMesh::time_left() const {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline_ - Clock::now()));
}

void TcpMesh::check_in_time() {
  options_.store.check();
  if (Clock::now() < deadline_) return;
  if (const std::vector<int> ranks = missing(); !ranks.empty()) fail_late(ranks);
}

/// Who ends early would be taken for lost by those that wait for the same rank.
void TcpMesh::fail_for_all(Error error) const {
  options_.store.fail(error);
  throw Error(error.add({.rank = options_.rank, .operation = "start"}));
}

void TcpMesh::fail_late(const std::vector<int>& ranks) const {
  Error late(ErrorKind::kTimeout, "not connected to " + ranks_text(ranks) + " within " +
                                      std::to_string(options_.deadline.count()) +
                                      " ms; were all ranks started?");
  fail_for_all(late);
}

/// Those who are connected to all may be at work already: they learn the cause, not that this rank
/// is gone.
void TcpMesh::tell_connected(const Error& error) {
  for (const Descriptor& socket : sockets_) {
    if (!socket.is_open()) continue;
    FrameWriter writer;
    writer.queue_control({.kind = FrameKind::kPoison}, error_to_bytes(flattened(error)));
    try {
      writer.write(socket);  // the first bytes of the connection: there is room
    } catch (const Error&) {
      continue;  // a later error: this peer cannot be told
    }
  }
}

void TcpMesh::fail_lost(int peer) {
  // The peer may have ended because it knows of another rank's loss: the store names the first.
  const Deadline patience = Clock::now() + std::chrono::seconds(1);
  while (Clock::now() < patience) {
    options_.store.check();
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw lost_rank(peer, "its connection closed");
}

Error TcpMesh::wrong_size(int peer, int size) const {
  Error wrong(ErrorKind::kInvalidArgument,
              "rank " + std::to_string(peer) + " was started for a world of " +
                  std::to_string(size) + " ranks, rank " + std::to_string(options_.rank) +
                  " for a world of " + std::to_string(options_.world_size) +
                  " ranks; start all with the same number");
  return wrong;
}

}  // namespace trireme::transport::internal
