#include "trireme/wire/collectives/group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "trireme/wire/collectives/device/device_backend.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/host/arena.h"
#include "trireme/wire/collectives/host/host_backend.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/network_backend.h"

namespace trireme::collectives {
namespace {

[[noreturn]] void refuse(const std::string& group, const std::string& problem) {
  Error error(ErrorKind::kInvalidArgument, problem);
  error.add({.group = group});
  throw error;
}

Members checked_members(transport::Endpoint& endpoint, std::vector<int> ranks,
                        GroupOptions options) {
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
  return {.endpoint = endpoint,
          .ranks = std::move(ranks),
          .group_rank = group_rank,
          .name = std::move(options.name),
          .id = id,
          .deadline = options.deadline,
          .order = options.order,
          .algorithm = options.algorithm,
          .costs = options.costs,
          .ranks_per_host = common_ranks_per_host(hosts),
          .num_reducers = options.num_reducers,
          .flight = std::move(flight),
          .logger = options.logger};
}

std::unique_ptr<Backend> make_backend(const Members& members, const DeviceChoice& choice) {
  if (choice.device.kind != DeviceKind::kCpu) {
    return std::make_unique<DeviceBackend>(members, choice);
  }
  const bool has_room = members.size() <= Arena::kMaxRanks && members.num_reducers == 0;
  if (has_room && members.share_memory()) return std::make_unique<HostBackend>(members);
  return std::make_unique<NetworkBackend>(members);
}

Elements as_elements(std::span<std::byte> bytes) { return {bytes, Dtype::kU8}; }

/// For the description: not 0 where parts are not all of one size.
std::int32_t mark_of(std::span<const std::int64_t> counts) {
  if (std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end()) return 0;
  std::uint64_t hash = 1;
  for (const std::int64_t count : counts) hash = mixed(hash, count);
  return static_cast<std::int32_t>(hash >> 33 | 1);
}

/// Parts of so many elements each, one behind the other.
std::vector<Chunk> parts_of(std::span<const std::int64_t> counts) {
  std::vector<Chunk> parts;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    parts.push_back({begin, begin + count});
    begin += count;
  }
  return parts;
}

/// Whether a difference between any two ranks is noticed in the operation, also where some ranks
/// have no elements.
bool compares_all(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kAllGather || operation == Operation::kBarrier;
}

}  // namespace

/// What a group is made of.
struct Group::State {
  State(Members of, const DeviceChoice& choice)
      : members(std::move(of)),
        is_on_host(choice.device.kind == DeviceKind::kCpu),
        backend(make_backend(members, choice)) {}

  void check_root(int root) const {
    if (root >= 0 && root < members.size()) return;
    refuse(members.name, "there is no group rank " + std::to_string(root) + " among " +
                             std::to_string(members.size()));
  }

  void check_reducible(const Elements& data, const Reduce& by) const {
    const std::size_t element = size_bytes(data.dtype);
    if (data.bytes.size() % element != 0 ||
        reinterpret_cast<std::uintptr_t>(data.bytes.data()) % std::min<std::size_t>(element, 8) !=
            0) {
      refuse(members.name, "a buffer of " + std::string(to_text(data.dtype)) + " has " +
                               std::to_string(data.bytes.size()) +
                               " bytes, or does not begin where an element can; expected whole, "
                               "aligned elements");
    }
    if (!std::isfinite(by.scale)) refuse(members.name, "the scale of a sum is no finite number");
    if (kernels::is_reducible(data.dtype, by.op)) return;
    refuse(members.name, "there is no " + std::string(kernels::to_text(by.op)) + " of " +
                             std::string(to_text(data.dtype)));
  }

  void check_no_reducers(std::string_view operation) const {
    if (members.num_reducers == 0) return;
    refuse(members.name, "there is no " + std::string(operation) +
                             " with reducers; make a group of the ranks that have data");
  }

  void check_parts(std::span<const std::int64_t> counts, std::int64_t total,
                   std::string_view of) const {
    const bool is_whole = static_cast<int>(counts.size()) == members.size() &&
                          std::all_of(counts.begin(), counts.end(), [](auto n) { return n >= 0; });
    const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (is_whole && sum == total) return;
    refuse(members.name, "the " + std::to_string(counts.size()) + " parts of " + std::string(of) +
                             " have " + std::to_string(sum) + " elements; expected " +
                             std::to_string(members.size()) + " parts with " +
                             std::to_string(total));
  }

  transport::WorkPtr submit(Request request) {
    if (compares_all(request.description.operation)) {
      request.description.hash = std::exchange(hash, std::nullopt);
    }
    return backend->submit(std::move(request));
  }

  void check_messages() const {
    if (is_on_host) return;
    refuse(members.name,
           "messages between two ranks move memory of the host; on GPUs use a channel (C++: "
           "channel::DeviceChannel) or an all_to_all");
  }

  const Members members;
  const bool is_on_host;
  const std::unique_ptr<Backend> backend;
  std::optional<std::uint64_t> hash;  ///< For the next operation that can carry one.
};

Group::Group(transport::Endpoint& endpoint, std::vector<int> ranks, GroupOptions options)
    : state_(std::make_unique<State>(checked_members(endpoint, std::move(ranks), options),
                                     DeviceChoice{.device = options.device,
                                                  .caller = options.stream,
                                                  .checks_calls = options.checks_calls})) {}

Group::~Group() = default;

int Group::size() const { return state_->members.size(); }
int Group::group_rank() const { return state_->members.group_rank; }
const std::vector<int>& Group::ranks() const { return state_->members.ranks; }
transport::Endpoint& Group::endpoint() const { return state_->members.endpoint; }
std::chrono::milliseconds Group::deadline() const { return state_->members.deadline; }
std::vector<int> Group::missing() const { return state_->backend->missing(); }
FlightRecord Group::flight() const { return parse_flight(state_->members.flight->copy()); }
void Group::attach_hash(std::uint64_t hash) {
  std::optional<std::uint64_t>& all = state_->hash;
  all = all ? mixed(mixed(1, static_cast<std::int64_t>(*all)), static_cast<std::int64_t>(hash))
            : hash;
}

std::span<std::byte> Group::allocate(std::size_t bytes) { return state_->backend->allocate(bytes); }

// ---- Reductions

transport::WorkPtr Group::all_reduce(Elements data, Reduce by) {
  state_->check_reducible(data, by);
  return state_->submit({.description = {.operation = Operation::kAllReduce,
                                         .dtype = data.dtype,
                                         .reduce = by.op,
                                         .count = data.count(),
                                         .root = state_->members.num_reducers},
                         .scale = by.scale,
                         .data = data});
}

transport::WorkPtr Group::reduce(Elements data, int root, Reduce by) {
  state_->check_reducible(data, by);
  state_->check_no_reducers("reduce");
  state_->check_root(root);
  return state_->submit({.description = {.operation = Operation::kReduce,
                                         .dtype = data.dtype,
                                         .reduce = by.op,
                                         .count = data.count(),
                                         .root = root},
                         .scale = by.scale,
                         .data = data});
}

transport::WorkPtr Group::reduce_scatter(Elements data, Reduce by) {
  std::vector<std::int64_t> counts;
  for (int i = 0; i < size(); ++i) counts.push_back(chunk_of(data.count(), size(), i).size());
  return reduce_scatter(data, counts, by);
}

transport::WorkPtr Group::reduce_scatter(Elements data, std::span<const std::int64_t> counts,
                                         Reduce by) {
  state_->check_reducible(data, by);
  state_->check_no_reducers("reduce_scatter");
  state_->check_parts(counts, data.count(), "a reduce_scatter");
  return state_->submit({.description = {.operation = Operation::kReduceScatter,
                                         .dtype = data.dtype,
                                         .reduce = by.op,
                                         .count = data.count(),
                                         .root = mark_of(counts)},
                         .scale = by.scale,
                         .data = data,
                         .parts = parts_of(counts)});
}

// ---- Moves

transport::WorkPtr Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::vector<std::int64_t> counts(size(), static_cast<std::int64_t>(mine.size()));
  return all_gather(mine, all, counts);
}

transport::WorkPtr Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                     std::span<const std::int64_t> counts) {
  state_->check_parts(counts, static_cast<std::int64_t>(all.size()), "an all_gather");
  std::vector<Chunk> parts = parts_of(counts);
  const std::span<std::byte> own = as_elements(all).part(parts[group_rank()]).bytes;
  if (own.size() != mine.size()) {
    refuse(state_->members.name, "this rank gives " + std::to_string(mine.size()) +
                                     " bytes to an all_gather in which its part has " +
                                     std::to_string(own.size()));
  }
  const bool is_in_place = own.data() == mine.data() || mine.empty();
  if (!is_in_place && state_->is_on_host) std::memmove(own.data(), mine.data(), mine.size());
  return state_->submit(
      {.description = {.operation = Operation::kAllGather,
                       .count = static_cast<std::int64_t>(all.size()),
                       .root = mark_of(counts)},
       .data = as_elements(all),
       .parts = std::move(parts),
       .mine = is_in_place || state_->is_on_host ? std::span<const std::byte>() : mine});
}

transport::WorkPtr Group::broadcast(std::span<std::byte> data, int root_group_rank) {
  state_->check_root(root_group_rank);
  return state_->submit({.description = {.operation = Operation::kBroadcast,
                                         .count = static_cast<std::int64_t>(data.size()),
                                         .root = root_group_rank},
                         .data = as_elements(data)});
}

transport::WorkPtr Group::gather(std::span<const std::byte> mine, Receives all, int root) {
  state_->check_root(root);
  const bool is_root = root == group_rank();
  Request request{.description = {.operation = Operation::kGather, .root = root}};
  request.sends.resize(size());
  request.sends[root] = mine;
  request.recvs.resize(size());
  if (is_root) request.recvs = std::move(all);
  return exchange(std::move(request));
}

transport::WorkPtr Group::scatter(Sends all, std::span<std::byte> mine, int root) {
  state_->check_root(root);
  const bool is_root = root == group_rank();
  Request request{.description = {.operation = Operation::kScatter, .root = root}};
  request.recvs.resize(size());
  request.recvs[root] = mine;
  request.sends.resize(size());
  if (is_root) request.sends = std::move(all);
  return exchange(std::move(request));
}

transport::WorkPtr Group::all_to_all(std::span<const std::byte> send, std::span<std::byte> recv) {
  const auto n = static_cast<std::size_t>(size());
  if (send.size() != recv.size() || send.size() % n != 0) {
    refuse(state_->members.name, "an all_to_all among " + std::to_string(n) +
                                     " ranks needs two buffers of one size that it divides, got " +
                                     std::to_string(send.size()) + " and " +
                                     std::to_string(recv.size()) + " bytes");
  }
  const std::size_t part = send.size() / n;
  Request request{
      .description = {.operation = Operation::kAllToAll, .count = static_cast<std::int64_t>(part)}};
  for (std::size_t i = 0; i < n; ++i) {
    request.sends.push_back(send.subspan(i * part, part));
    request.recvs.push_back(recv.subspan(i * part, part));
  }
  return exchange(std::move(request));
}

transport::WorkPtr Group::all_to_all(Sends sends, Receives recvs) {
  return exchange({.description = {.operation = Operation::kAllToAll},
                   .sends = std::move(sends),
                   .recvs = std::move(recvs)});
}

transport::WorkPtr Group::exchange(Request request) {
  const auto n = static_cast<std::size_t>(size());
  const auto own = static_cast<std::size_t>(group_rank());
  if (request.sends.size() != n || request.recvs.size() != n) {
    refuse(state_->members.name, "expected a part for each of " + std::to_string(n) +
                                     " ranks, got " + std::to_string(request.sends.size()) +
                                     " to send and " + std::to_string(request.recvs.size()) +
                                     " to receive");
  }
  if (request.sends[own].size() != request.recvs[own].size()) {
    refuse(state_->members.name,
           "this rank sends itself " + std::to_string(request.sends[own].size()) +
               " bytes and expects " + std::to_string(request.recvs[own].size()));
  }
  return state_->submit(std::move(request));
}

transport::WorkPtr Group::barrier() {
  return state_->submit({.description = {.operation = Operation::kBarrier}});
}

// ---- Between two ranks

transport::WorkPtr Group::send(int peer_group_rank, std::span<const std::byte> data) {
  state_->check_root(peer_group_rank);
  state_->check_messages();
  return endpoint().send(ranks()[peer_group_rank], state_->members.tag(Use::kPointToPoint), data);
}

transport::WorkPtr Group::recv(int peer_group_rank, std::span<std::byte> data) {
  state_->check_root(peer_group_rank);
  state_->check_messages();
  return endpoint().recv(ranks()[peer_group_rank], state_->members.tag(Use::kPointToPoint),
                         [data](std::size_t) { return data; });
}

transport::Awaited group_work(transport::Work& work, const Group& group) {
  return {.work = work,
          .endpoint = group.endpoint(),
          .missing = [&group] { return group.missing(); },
          .has_deadline = true};
}

void run_after(Stream& stream, transport::Work& work) {
  if (const Event* end = end_of(work)) {
    work.wait_for(std::chrono::milliseconds(0));  // throws where it has failed
    return stream.run_after(*end);
  }
  work.wait_for(std::chrono::milliseconds::max());
}

}  // namespace trireme::collectives
