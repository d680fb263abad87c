#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/doctor/doctor.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::doctor {
namespace {

/// Whether a rank at `host` is of use to those who meet at `store`.
bool is_reachable(const std::string& host, const std::string& store) {
  return !transport::is_loopback(host) || transport::is_loopback(store) || store == "localhost";
}

}  // namespace

Finding examine_store(const transport::Address& address, const transport::Token& token,
                      std::chrono::milliseconds patience, const std::string& host) {
  const std::string topic = "store " + to_text(address);
  const auto begin = std::chrono::steady_clock::now();
  try {
    transport::StoreClient client(address, transport::kObserver, {.deadline = patience}, token);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    const std::string chosen = host.empty() ? client.local_host() : host;
    const std::string found =
        "answered after " + std::to_string(time.count()) + " ms; this host is " + chosen + " to it";
    std::string lost;
    try {
      client.check();
    } catch (const Error& error) {
      lost = error.message();
    }
    client.shutdown();
    if (!lost.empty())
      return {topic, Verdict::kBroken, found + "; " + lost, "start the world anew"};
    if (is_reachable(chosen, address.host)) {
      return {topic, Verdict::kGood, found, ""};
    }
    return {
        topic, Verdict::kBroken, found + ", which other hosts cannot reach",
        "set TRIREME_HOST or TRIREME_INTERFACE to what others reach; is the name of the store an "
        "address of the network on this host?"};
  } catch (const Error& error) {
    return {topic, Verdict::kBroken, error.what(),
            "is the rank or launcher that serves it running, at that address, and does a firewall "
            "let this host through?"};
  }
}

namespace {

using collectives::Group;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
using HostName = std::array<char, 256>;

constexpr std::uint64_t kFirstGroupId = std::uint64_t{0xd0c} << 40;  // away from those of programs
constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kBarriers = 51;
constexpr int kBroadcasts = 6;

void finish(const transport::WorkPtr& work, const Group& group, const char* operation) {
  transport::await(collectives::group_work(*work, group), {.deadline = group.deadline()},
                   {.rank = group.endpoint().rank(), .operation = operation});
}

Microseconds round_trip(Group& group) {
  std::vector<Microseconds> times;
  for (int i = 0; i < kBarriers; ++i) {
    const auto begin = Clock::now();
    finish(group.barrier(), group, "doctor's barrier");
    times.push_back(Clock::now() - begin);
  }
  std::nth_element(times.begin(), times.begin() + kBarriers / 2, times.end());
  return times[kBarriers / 2];
}

/// From group rank 0; a barrier behind it says that the other one has it.
double bandwidth(Group& group) {
  const std::span<std::byte> memory = group.allocate(kBytes);
  double best = 0;
  for (int i = 0; i < kBroadcasts; ++i) {
    const auto begin = Clock::now();
    finish(group.broadcast(memory, 0), group, "doctor's broadcast");
    finish(group.barrier(), group, "doctor's barrier");
    const std::chrono::duration<double> time = Clock::now() - begin;
    best = std::max(best, static_cast<double>(kBytes) / time.count() / 1e9);
  }
  return best;
}

std::string host_of_last(Group& group) {
  HostName name{};
  if (group.group_rank() == 1) ::gethostname(name.data(), name.size() - 1);
  finish(group.broadcast(std::as_writable_bytes(std::span(name)), 1), group, "doctor's broadcast");
  return {name.data(), strnlen(name.data(), name.size())};
}

}  // namespace

std::vector<PeerPath> measure_peers(transport::Endpoint& endpoint,
                                    std::chrono::milliseconds deadline) {
  std::vector<PeerPath> paths;
  for (int peer = 1; peer < endpoint.world_size(); ++peer) {
    if (endpoint.rank() != 0 && endpoint.rank() != peer) continue;
    Group group(endpoint, {0, peer},
                {.name = "doctor 0-" + std::to_string(peer),
                 .id = kFirstGroupId + static_cast<std::uint64_t>(peer),
                 .deadline = deadline});
    PeerPath path{.rank = peer,
                  .host = host_of_last(group),
                  .path = endpoint.local_peers().contains(peer) ? "shm" : endpoint.path(),
                  .round_trip = round_trip(group),
                  .gb_per_s = bandwidth(group)};
    if (endpoint.rank() == 0) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace trireme::doctor
