#include "trireme/wire/transport/tcp/mesh.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/transport/error_form.h"
#include "trireme/wire/transport/shm/local_mesh.h"
#include "trireme/wire/transport/tcp/frame_writer.h"

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kListenerId = 0;
constexpr milliseconds kCheckEvery{50};  // how often the store is asked who is lost

std::uint64_t random_id() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace

Mesh::Mesh(const TcpOptions& options)
    : options_(options), deadline_(Clock::now() + options.deadline), sockets_(options.world_size) {}

void Mesh::connect() {
  try {
    publish();
    for (int peer = 0; peer < options_.rank; ++peer) connect_to_rank(peer);
    accept_others();
    connect_locally();
  } catch (const Error& error) {
    tell_connected(error);
    throw;
  }
}

void Mesh::connect_locally() {
  local_sockets_ = connect_local_ranks({.store = options_.store,
                                        .rank = options_.rank,
                                        .world_size = options_.world_size,
                                        .name = options_.name,
                                        .world_id = world_id_,
                                        .deadline = deadline_,
                                        .shares_memory = options_.shares_memory});
}

void Mesh::publish() {
  listener_ = listen_on({options_.store.local_host(), 0});
  if (options_.rank == 0) options_.store.set(key("id"), std::to_string(random_id()));
  options_.store.set(key("address/" + std::to_string(options_.rank)),
                     to_text(local_address(listener_)));
  world_id_ = std::stoull(options_.store.get(key("id"), time_left()));
}

// ---- Ranks below

void Mesh::connect_to_rank(int peer) {
  Descriptor socket = open_connection(peer);
  const HelloBytes hello = to_bytes(
      Hello{.world_id = world_id_, .rank = options_.rank, .world_size = options_.world_size});
  if (write_some(socket, hello) != hello.size()) fail_lost(peer);
  const Hello theirs = read_answer(peer, socket);
  if (theirs.world_size != options_.world_size) fail_wrong_size(peer, theirs.world_size);
  if (theirs.welcome != Welcome::kYes || theirs.rank != peer || theirs.world_id != world_id_) {
    Error refused(ErrorKind::kInvalidArgument,
                  "rank " + std::to_string(peer) + " does not take this process for rank " +
                      std::to_string(options_.rank) + " of its world; was a rank started twice?");
    throw Error(refused.add({.rank = options_.rank, .peer = peer}));
  }
  adopt(peer, std::move(socket));
}

Descriptor Mesh::open_connection(int peer) {
  const Address address =
      parse_address(options_.store.get(key("address/" + std::to_string(peer)), time_left()));
  while (true) {
    check_in_time();
    try {
      return connect_to(address, {.deadline = std::min(time_left(), milliseconds(500))});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
    }
  }
}

Hello Mesh::read_answer(int peer, const Descriptor& socket) {
  HelloBytes bytes{};
  std::span<std::byte> rest(bytes);
  while (!rest.empty()) {
    if (!wait_readable(socket, Clock::now() + kCheckEvery)) {
      check_in_time();
      continue;
    }
    const auto count = read_some(socket, rest);
    if (!count) fail_lost(peer);
    rest = rest.subspan(*count);
  }
  return parse_hello(bytes);
}

// ---- Ranks above

void Mesh::accept_others() {
  poller_.add(listener_, kListenerId);
  while (!missing().empty()) {
    for (const Poller::Event& event : poller_.wait(Clock::now() + kCheckEvery)) {
      if (event.id == kListenerId) {
        accept_strangers();
      } else if (!hear(strangers_.at(event.id))) {
        strangers_.erase(event.id);
      }
    }
    check_in_time();
  }
}

void Mesh::accept_strangers() {
  while (std::optional<Descriptor> socket = accept_from(listener_)) {
    const std::uint64_t id = ++last_id_;
    poller_.add(*socket, id);
    strangers_[id].socket = std::move(*socket);
  }
}

/// Reads on; whether to keep the stranger.
bool Mesh::hear(Stranger& stranger) {
  const auto count =
      read_some(stranger.socket, std::span(stranger.bytes).subspan(stranger.num_bytes));
  if (!count) return false;
  stranger.num_bytes += *count;
  if (stranger.num_bytes < stranger.bytes.size()) return true;
  Hello hello;
  try {
    hello = parse_hello(stranger.bytes);
  } catch (const Error&) {  // not one of us: nobody is waiting for an answer
    return false;
  }
  answer(stranger, hello);
  return false;
}

void Mesh::answer(Stranger& stranger, const Hello& hello) {
  const Welcome welcome = judge(hello);
  const HelloBytes bytes = to_bytes(Hello{.welcome = welcome,
                                          .world_id = world_id_,
                                          .rank = options_.rank,
                                          .world_size = options_.world_size});
  const auto count = write_some(stranger.socket, bytes);
  if (welcome == Welcome::kWrongSize) fail_wrong_size(hello.rank, hello.world_size);
  if (welcome != Welcome::kYes || count != bytes.size()) return;
  poller_.remove(stranger.socket);
  adopt(hello.rank, std::move(stranger.socket));
}

Welcome Mesh::judge(const Hello& hello) const {
  if (hello.welcome != Welcome::kHello || hello.world_id != world_id_) return Welcome::kWrongWorld;
  if (hello.world_size != options_.world_size) return Welcome::kWrongSize;
  if (hello.rank <= options_.rank || hello.rank >= options_.world_size ||
      sockets_[hello.rank].is_open()) {
    return Welcome::kWrongRank;
  }
  return Welcome::kYes;
}

// ---- Both

void Mesh::adopt(int peer, Descriptor socket) {
  set_options_of_connection(socket);
  if (options_.socket_buffer_bytes > 0) set_buffer_size(socket, options_.socket_buffer_bytes);
  sockets_[peer] = std::move(socket);
}

std::vector<int> Mesh::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < options_.world_size; ++peer) {
    if (peer != options_.rank && !sockets_[peer].is_open()) ranks.push_back(peer);
  }
  return ranks;
}

milliseconds Mesh::time_left() const {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline_ - Clock::now()));
}

void Mesh::check_in_time() {
  options_.store.check();
  if (Clock::now() < deadline_) return;
  std::string ranks;
  for (const int peer : missing()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(peer);
  if (ranks.empty()) return;
  Error late(ErrorKind::kTimeout, "not connected to rank " + ranks + " within " +
                                      std::to_string(options_.deadline.count()) +
                                      " ms; were all ranks started?");
  throw Error(late.add({.rank = options_.rank, .operation = "start"}));
}

/// Those who are connected to all may be at work already: they learn the cause, not that this rank
/// is gone.
void Mesh::tell_connected(const Error& error) {
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

void Mesh::fail_lost(int peer) {
  // The peer may have ended because it knows of another rank's loss: the store names the first.
  const Deadline patience = Clock::now() + std::chrono::seconds(1);
  while (Clock::now() < patience) {
    options_.store.check();
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw lost_rank(peer, "its connection closed");
}

void Mesh::fail_wrong_size(int peer, int size) const {
  Error wrong(ErrorKind::kInvalidArgument,
              "rank " + std::to_string(peer) + " was started for a world of " +
                  std::to_string(size) + " ranks, this rank for one of " +
                  std::to_string(options_.world_size) + "; start all with the same number");
  throw Error(wrong.add({.rank = options_.rank, .peer = peer}));
}

}  // namespace trireme::transport::internal
