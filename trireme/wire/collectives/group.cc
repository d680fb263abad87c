#include "trireme/wire/collectives/group.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "trireme/wire/collectives/group_state.h"

namespace trireme::collectives {
namespace {

Elements as_elements(std::span<std::byte> bytes) { return {bytes, Dtype::kU8}; }

transport::MessageLabel label_of(const MessageOptions& options) {
  return {.tag = options.tag, .type = transport::type_name(to_text(options.dtype))};
}

/// For the description: not 0 where parts are not all of one size.
std::int32_t mark_of(std::span<const std::int64_t> counts) {
  if (std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end()) return 0;
  std::uint64_t hash = 1;
  for (const std::int64_t count : counts) hash = mixed(hash, count);
  return static_cast<std::int32_t>(hash >> 33 | 1);
}

bool have_common_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<const std::byte*> is_before;
  return is_before(a.data(), b.data() + b.size()) && is_before(b.data(), a.data() + a.size());
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

}  // namespace

Group::Group(transport::Endpoint& endpoint, std::vector<int> ranks, GroupOptions options)
    : state_(std::make_unique<State>(make_members(endpoint, std::move(ranks), options),
                                     DeviceChoice{.device = options.device,
                                                  .caller = options.stream,
                                                  .checks_calls = options.checks_calls})) {}

Group::~Group() = default;

int Group::size() const { return state_->members.size(); }
int Group::group_rank() const { return state_->members.group_rank; }
const std::vector<int>& Group::ranks() const { return state_->members.ranks; }
transport::Endpoint& Group::endpoint() const { return state_->members.endpoint; }
std::chrono::milliseconds Group::deadline() const { return state_->deadline; }
void Group::set_deadline(std::chrono::milliseconds deadline) { state_->deadline = deadline; }
std::optional<Error> Group::failure() const { return state_->members.failure()->error(); }
transport::Tag Group::first_tag() const { return Members::first_tag(state_->members.id); }
void Group::abort(const std::string& reason) {
  const Members& members = state_->members;
  members.fail(
      transport::aborted_by(members.endpoint.rank(), "group '" + members.name + "'", reason));
}
std::vector<int> Group::missing() const { return state_->backend->missing(); }
FlightRecord Group::flight() const { return parse_flight(state_->members.flight->copy()); }
void Group::attach_hash(std::uint64_t hash) {
  std::optional<std::uint64_t>& all = state_->hash;
  all = all ? mixed(mixed(1, static_cast<std::int64_t>(*all)), static_cast<std::int64_t>(hash))
            : hash;
}

std::span<std::byte> Group::allocate(std::size_t bytes) {
  return state_->backend->allocate(bytes, state_->deadline);
}

// ---- Reductions

transport::WorkPtr Group::all_reduce(Elements data, Reduce by) {
  state_->check_reducible(data, by);
  return state_->submit({.description = {.operation = Collective::kAllReduce,
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
  return state_->submit({.description = {.operation = Collective::kReduce,
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
  return scatter_sums(data, counts, by, {});
}

transport::WorkPtr Group::reduce_scatter(Elements data, std::span<const std::int64_t> counts,
                                         Reduce by, std::span<std::byte> result) {
  const std::size_t own =
      counts.size() == static_cast<std::size_t>(size())
          ? static_cast<std::size_t>(counts[group_rank()]) * size_bytes(data.dtype)
          : 0;
  if (result.size() != own || have_common_bytes(result, data.bytes) || !state_->is_on_host) {
    state_->refuse("the result of a reduce_scatter has " + std::to_string(result.size()) +
                   " bytes; expected the " + std::to_string(own) +
                   " of this rank's part, apart from the data, in the host's memory");
  }
  return scatter_sums(data, counts, by, result);
}

transport::WorkPtr Group::scatter_sums(Elements data, std::span<const std::int64_t> counts,
                                       Reduce by, std::span<std::byte> result) {
  state_->check_reducible(data, by);
  state_->check_no_reducers("reduce_scatter");
  state_->check_parts(counts, data.count(), "a reduce_scatter");
  return state_->submit({.description = {.operation = Collective::kReduceScatter,
                                         .dtype = data.dtype,
                                         .reduce = by.op,
                                         .count = data.count(),
                                         .root = mark_of(counts)},
                         .scale = by.scale,
                         .data = data,
                         .parts = parts_of(counts),
                         .result = result});
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
    state_->refuse("this rank gives " + std::to_string(mine.size()) +
                   " bytes to an all_gather in which its part has " + std::to_string(own.size()));
  }
  const bool is_in_place = own.data() == mine.data();
  if (!is_in_place && !mine.empty() && have_common_bytes(mine, all)) {
    state_->refuse(
        "what this rank gives to an all_gather is its part of the result, or apart from it");
  }
  return state_->submit({.description = {.operation = Collective::kAllGather,
                                         .count = static_cast<std::int64_t>(all.size()),
                                         .root = mark_of(counts)},
                         .data = as_elements(all),
                         .parts = std::move(parts),
                         .mine = is_in_place ? std::span<const std::byte>() : mine});
}

transport::WorkPtr Group::broadcast(std::span<std::byte> data, int root_group_rank) {
  state_->check_root(root_group_rank);
  return state_->submit({.description = {.operation = Collective::kBroadcast,
                                         .count = static_cast<std::int64_t>(data.size()),
                                         .root = root_group_rank},
                         .data = as_elements(data)});
}

transport::WorkPtr Group::gather(std::span<const std::byte> mine, Receives all, int root) {
  state_->check_root(root);
  const bool is_root = root == group_rank();
  Request request{.description = {.operation = Collective::kGather, .root = root}};
  request.sends.resize(size());
  request.sends[root] = mine;
  request.recvs.resize(size());
  if (is_root) request.recvs = std::move(all);
  return exchange(std::move(request));
}

transport::WorkPtr Group::scatter(Sends all, std::span<std::byte> mine, int root) {
  state_->check_root(root);
  const bool is_root = root == group_rank();
  Request request{.description = {.operation = Collective::kScatter, .root = root}};
  request.recvs.resize(size());
  request.recvs[root] = mine;
  request.sends.resize(size());
  if (is_root) request.sends = std::move(all);
  return exchange(std::move(request));
}

transport::WorkPtr Group::all_to_all(std::span<const std::byte> send, std::span<std::byte> recv) {
  const auto n = static_cast<std::size_t>(size());
  if (send.size() != recv.size() || send.size() % n != 0) {
    state_->refuse("an all_to_all among " + std::to_string(n) +
                   " ranks needs two buffers of one size that it divides, got " +
                   std::to_string(send.size()) + " and " + std::to_string(recv.size()) + " bytes");
  }
  const std::size_t part = send.size() / n;
  Request request{.description = {.operation = Collective::kAllToAll,
                                  .count = static_cast<std::int64_t>(part)}};
  for (std::size_t i = 0; i < n; ++i) {
    request.sends.push_back(send.subspan(i * part, part));
    request.recvs.push_back(recv.subspan(i * part, part));
  }
  return exchange(std::move(request));
}

transport::WorkPtr Group::all_to_all(Sends sends, Receives recvs) {
  return exchange({.description = {.operation = Collective::kAllToAll},
                   .sends = std::move(sends),
                   .recvs = std::move(recvs)});
}

transport::WorkPtr Group::exchange(Request request) {
  const auto n = static_cast<std::size_t>(size());
  const auto own = static_cast<std::size_t>(group_rank());
  if (request.sends.size() != n || request.recvs.size() != n) {
    state_->refuse("expected a part for each of " + std::to_string(n) + " ranks, got " +
                   std::to_string(request.sends.size()) + " to send and " +
                   std::to_string(request.recvs.size()) + " to receive");
  }
  if (request.sends[own].size() != request.recvs[own].size()) {
    state_->refuse("this rank sends itself " + std::to_string(request.sends[own].size()) +
                   " bytes and expects " + std::to_string(request.recvs[own].size()));
  }
  return state_->submit(std::move(request));
}

transport::WorkPtr Group::barrier() {
  return state_->submit({.description = {.operation = Collective::kBarrier}});
}

// ---- Between two ranks

transport::WorkPtr Group::send(int peer_group_rank, std::span<const std::byte> data,
                               const MessageOptions& options) {
  state_->check_peer(peer_group_rank);
  state_->check_message(data.size(), options);
  const int peer = ranks()[peer_group_rank];
  auto work = endpoint().messages().send(
      {.domain = first_tag(), .peer = peer, .label = label_of(options), .data = data});
  state_->messages.add({work, {peer}, "send", options.tag, state_->deadline});
  return work;
}

transport::RecvWorkPtr Group::recv(int source_group_rank, std::span<std::byte> data,
                                   const MessageOptions& options) {
  const bool is_any = source_group_rank == transport::kAnySource;
  if (!is_any) state_->check_peer(source_group_rank);
  state_->check_message(data.size(), options);
  const int source = is_any ? transport::kAnySource : ranks()[source_group_rank];
  auto work = endpoint().messages().recv({.domain = first_tag(),
                                          .source = source,
                                          .label = label_of(options),
                                          .memory = data,
                                          .may_be_shorter = options.may_be_shorter});
  std::vector<int> sources = is_any ? ranks() : std::vector{source};
  state_->messages.add({work, std::move(sources), "recv", options.tag, state_->deadline});
  return work;
}

bool Group::cancel(const transport::RecvWorkPtr& recv) {
  return endpoint().messages().cancel(recv);
}

transport::Received Group::received(const transport::RecvWork& recv) const {
  const auto source = std::ranges::find(ranks(), recv.received().source);
  return {.source = static_cast<int>(source - ranks().begin()), .bytes = recv.received().bytes};
}

transport::Awaited group_work(transport::Work& work, const Group& group) {
  return {.work = work,
          .endpoint = group.endpoint(),
          .missing = [&group] { return group.missing(); },
          .has_deadline = true};
}

transport::Awaited group_message(transport::Work& work, const Group& group,
                                 std::vector<int> peers) {
  return {.work = work,
          .endpoint = group.endpoint(),
          .missing = [peers = std::move(peers)] { return peers; },
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
