#include "trireme/wire/collectives/group_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/host/arena.h"
#include "trireme/wire/collectives/host/host_queue.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/network_backend.h"

namespace trireme::collectives {
namespace {

[[noreturn]] void refuse(const std::string& group, const std::string& problem) {
  Error error(ErrorKind::kInvalidArgument, problem);
  error.add({.group = group});
  throw error;
}

std::unique_ptr<Backend> make_backend(const Members& members, const DeviceChoice& choice) {
  if (choice.device.kind != DeviceKind::kCpu) {
    return std::make_unique<DeviceBackend>(members, choice);
  }
  const bool has_room = members.size() <= Arena::kMaxRanks && members.num_reducers == 0;
  if (has_room && members.share_memory()) return std::make_unique<HostBackend>(members);
  return std::make_unique<NetworkBackend>(members);
}

/// The other ranks of one that cannot make it are told.
std::unique_ptr<Backend> try_backend(const Members& members, const DeviceChoice& choice) {
  if (const auto error = members.failure()->error()) throw Error(*error);
  try {
    return make_backend(members, choice);
  } catch (const Error& error) {
    members.fail(error);
    throw;
  }
}

/// Whether a difference between any two ranks is noticed in the operation, also where some ranks
/// have no elements.
bool compares_all(Collective operation) {
  return operation == Collective::kAllReduce || operation == Collective::kReduceScatter ||
         operation == Collective::kAllGather || operation == Collective::kBarrier;
}

}  // namespace

Members make_members(transport::Endpoint& endpoint, std::vector<int> ranks,
                     const GroupOptions& options) {
  constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 60) - 1;
  if (options.id > kMaxId) refuse(options.name, "the id of a group is below 2^60");
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto own = std::find(ranks.begin(), ranks.end(), endpoint.rank());
  if (own == ranks.end() || sorted.front() < 0 || sorted.back() >= endpoint.world_size() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    refuse(options.name, "the ranks of a group are different ranks of its world, this one (rank " +
                             std::to_string(endpoint.rank()) + " of " +
                             std::to_string(endpoint.world_size()) + ") among them");
  }
  if (options.num_reducers < 0 ||
      (options.num_reducers > 0 && std::ssize(ranks) - options.num_reducers < 2)) {
    refuse(options.name, std::to_string(options.num_reducers) + " of " +
                             std::to_string(ranks.size()) +
                             " ranks are reducers; at least two must have data to be summed");
  }
  for (const int rank : options.parent ? ranks : std::vector<int>()) {
    if (std::ranges::find(options.parent->ranks(), rank) != options.parent->ranks().end()) continue;
    refuse(options.name, "rank " + std::to_string(rank) + " is none of the parent's");
  }
  const int group_rank = static_cast<int>(own - ranks.begin());
  const std::uint64_t use = endpoint.count_use(message_id(options.id, ranks, 0));
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(endpoint.local_peers().host_of(rank));
  auto flight =
      std::make_shared<FlightRecorder>(FlightOwner{.world_rank = endpoint.rank(),
                                                   .world_size = endpoint.world_size(),
                                                   .group_rank = group_rank,
                                                   .group_size = static_cast<int>(ranks.size()),
                                                   .group = options.name});
  const std::uint64_t id = message_id(options.id, ranks, use);
  auto domain = endpoint.domains().open(
      {.first_tag = Members::first_tag(id),
       .ranks = ranks,
       .parent = options.parent ? std::optional(options.parent->first_tag()) : std::nullopt});
  return {.endpoint = endpoint,
          .ranks = std::move(ranks),
          .group_rank = group_rank,
          .name = options.name,
          .id = id,
          .deadline = options.deadline,
          .order = options.order,
          .algorithm = options.algorithm,
          .costs = options.costs,
          .ranks_per_host = common_ranks_per_host(hosts),
          .num_reducers = options.num_reducers,
          .flight = std::move(flight),
          .logger = options.logger,
          .domain = std::move(domain)};
}

Group::State::State(Members of, const DeviceChoice& choice)
    : members(std::move(of)),
      domain(members),
      is_on_host(choice.device.kind == DeviceKind::kCpu),
      deadline(members.deadline),
      backend(try_backend(members, choice)),
      messages(members) {
  tell_definition(members);
}

void Group::State::refuse(const std::string& problem) {
  tell_refusal(members, num_calls, problem);
  has_refused = true;
  collectives::refuse(members.name, problem);
}

void Group::State::check_peer(int group_rank) const {
  if (group_rank >= 0 && group_rank < members.size()) return;
  collectives::refuse(members.name, "there is no group rank " + std::to_string(group_rank) +
                                        " among " + std::to_string(members.size()));
}

void Group::State::check_root(int root) {
  if (root >= 0 && root < members.size()) return;
  refuse("there is no group rank " + std::to_string(root) + " among " +
         std::to_string(members.size()));
}

void Group::State::check_reducible(const Elements& data, const Reduce& by) {
  const std::size_t element = size_bytes(data.dtype);
  if (data.bytes.size() % element != 0 ||
      reinterpret_cast<std::uintptr_t>(data.bytes.data()) % std::min<std::size_t>(element, 8) !=
          0) {
    refuse("a buffer of " + std::string(to_text(data.dtype)) + " has " +
           std::to_string(data.bytes.size()) +
           " bytes, or does not begin where an element can; expected whole, "
           "aligned elements");
  }
  if (!std::isfinite(by.scale)) refuse("the scale of a sum is no finite number");
  if (kernels::is_reducible(data.dtype, by.op)) return;
  refuse("there is no " + std::string(kernels::to_text(by.op)) + " of " +
         std::string(to_text(data.dtype)));
}

void Group::State::check_no_reducers(std::string_view operation) {
  if (members.num_reducers == 0) return;
  refuse("there is no " + std::string(operation) +
         " with reducers; make a group of the ranks that have data");
}

void Group::State::check_parts(std::span<const std::int64_t> counts, std::int64_t total,
                               std::string_view of) {
  const bool is_whole = static_cast<int>(counts.size()) == members.size() &&
                        std::all_of(counts.begin(), counts.end(), [](auto n) { return n >= 0; });
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (is_whole && sum == total) return;
  refuse("the " + std::to_string(counts.size()) + " parts of " + std::string(of) + " have " +
         std::to_string(sum) + " elements; expected " + std::to_string(members.size()) +
         " parts with " + std::to_string(total));
}

transport::WorkPtr Group::State::submit(Request request) {
  if (compares_all(request.description.operation)) {
    request.description.hash = std::exchange(hash, std::nullopt);
  }
  request.deadline = deadline;
  if (std::exchange(has_refused, false)) retract_refusal(members);
  ++num_calls;
  return backend->submit(std::move(request));
}

void Group::State::check_message(std::size_t bytes, const MessageOptions& options) const {
  if (bytes % size_bytes(options.dtype) != 0) {
    collectives::refuse(members.name, "a message of " + std::string(to_text(options.dtype)) +
                                          " has " + std::to_string(bytes) +
                                          " bytes; expected whole elements");
  }
  if (is_on_host) return;
  collectives::refuse(
      members.name,
      "messages between two ranks move memory of the host; on GPUs use a channel (C++: "
      "collectives::DeviceChannel) or an all_to_all");
}

}  // namespace trireme::collectives
