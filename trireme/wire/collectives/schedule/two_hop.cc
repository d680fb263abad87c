// Each rank owns a chunk. Four ranks, all_reduce of data `abcd`, one letter per chunk:
//
//     rank 0 has a b c d     first hop: chunk i of every     rank 0 sums a     second hop: each
//     rank 1 has a b c d     rank goes to rank i             rank 1 sums b     sends its sum to
//     rank 2 has a b c d     (reduce_scatter)                rank 2 sums c     all others
//     rank 3 has a b c d                                     rank 3 sums d     (all_gather)
//
// Both hops go by segments: one that is summed leaves while others still arrive. A broadcast's
// first hop is the root's alone: chunk i to rank i. Reducers give nothing and get no result: the
// first hop comes from the ranks with data only, the second goes to them only.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

using internal::chunks_of;
using internal::data_range;
using internal::peers_of;
using internal::send_parts;

/// What is done with each segment of the own part: where the sum goes, and what follows it.
using Target = std::function<Range(const Range& segment)>;
using Next = std::function<void(const Range& sum)>;

struct FirstHop {
  std::span<const Chunk> parts;
  Target target = [](const Range& segment) { return segment; };
  Next next = [](const Range&) {};
  bool is_last = false;  ///< Nothing follows: sums may come late.
};

void send_parts_in_turn(ScheduleBuilder& builder, const CollectiveSetting& setting,
                        std::span<const Chunk> parts) {
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : peers_of(setting)) {
    parcels.push_back({peer, segments_of(data_range(parts[peer]), setting.segment)});
  }
  builder.send_in_turn(parcels);
}

/// Other ranks that give and get data.
std::vector<int> givers_of(const CollectiveSetting& setting) {
  std::vector<int> givers = peers_of(setting);
  std::erase_if(givers, [&](int peer) { return !setting.has_data(peer); });
  return givers;
}

void first_hop(ScheduleBuilder& builder, const CollectiveSetting& setting, const FirstHop& hop) {
  if (setting.has_data(setting.rank)) {
    hop.is_last ? send_parts_in_turn(builder, setting, hop.parts)
                : send_parts(builder, setting, hop.parts);
  }
  const Range own = data_range(hop.parts[setting.rank]);
  std::vector<Range> slots(setting.num_ranks - setting.num_reducers, own);
  for (const int peer : givers_of(setting)) slots[peer] = builder.scratch(own.size());
  const std::vector<Range> segments = segments_of(own, setting.segment);
  for (const Range& segment : segments) {
    for (const int peer : givers_of(setting)) {
      builder.recv(peer, part_of(slots[peer], segment.begin - own.begin, segment.end - own.begin));
    }
  }
  for (const Range& segment : segments) {
    std::vector<Range> sources;
    for (const Range& slot : slots) {
      sources.push_back(part_of(slot, segment.begin - own.begin, segment.end - own.begin));
    }
    const Range target = hop.target(segment);
    builder.reduce(target, sources);
    hop.next(target);
  }
}

/// Receives the parts of `peers`, each from its owner.
void recv_parts(ScheduleBuilder& builder, const CollectiveSetting& setting,
                std::span<const Chunk> parts, const std::vector<int>& peers) {
  for (const int peer : peers) {
    for (const Range& segment : segments_of(data_range(parts[peer]), setting.segment)) {
      builder.recv(peer, segment);
    }
  }
}

CollectiveSchedule two_hop_all_reduce(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  const std::vector<Chunk> chunks = chunks_of(setting);
  const Next spread = [&](const Range& sum) {
    for (const int peer : givers_of(setting)) builder.send(peer, sum);
  };
  if (!setting.has_data(setting.rank)) {
    const Target target = [&](const Range& segment) { return builder.scratch(segment.size()); };
    first_hop(builder, setting, {.parts = chunks, .target = target, .next = spread});
    return builder.take();
  }
  first_hop(builder, setting, {.parts = chunks, .next = spread});
  recv_parts(builder, setting, chunks, peers_of(setting));
  return builder.take();
}

CollectiveSchedule two_hop_reduce(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  const std::vector<Chunk> chunks = chunks_of(setting);
  if (setting.rank == setting.root) {
    first_hop(builder, setting, {.parts = chunks});
    recv_parts(builder, setting, chunks, peers_of(setting));
    return builder.take();
  }
  // The data of the others is left.
  const Target target = [&](const Range& segment) { return builder.scratch(segment.size()); };
  const Next next = [&](const Range& sum) { builder.send(setting.root, sum); };
  first_hop(builder, setting, {.parts = chunks, .target = target, .next = next});
  return builder.take();
}

CollectiveSchedule two_hop_broadcast(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  const int root = setting.root;
  const std::vector<Chunk> chunks = chunks_of(setting);
  const std::vector<Range> own = segments_of(data_range(chunks[setting.rank]), setting.segment);
  std::vector<int> others;
  for (const int peer : peers_of(setting)) {
    if (peer != root) others.push_back(peer);
  }
  if (setting.rank == root) {
    send_parts(builder, setting, chunks);
  } else {
    for (const Range& segment : own) builder.recv(root, segment);
  }
  for (const Range& segment : own) {
    for (const int peer : others) builder.send(peer, segment);
  }
  if (setting.rank != root) recv_parts(builder, setting, chunks, peers_of(setting));
  return builder.take();
}

/// The first hop: rank i gets part i; what else is in the data is left.
CollectiveSchedule direct_reduce_scatter(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks > 1) {
    first_hop(builder, setting, {.parts = setting.parts, .is_last = true});
  }
  return builder.take();
}

/// The second hop: part i is there on rank i.
CollectiveSchedule direct_all_gather(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  const std::vector<Range> own =
      segments_of(data_range(setting.parts[setting.rank]), setting.segment);
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : peers_of(setting)) parcels.push_back({peer, own});
  builder.send_in_turn(parcels);
  recv_parts(builder, setting, setting.parts, peers_of(setting));
  return builder.take();
}

// ---- all_to_all, and the barrier: nothing is cut or spread.

std::vector<Range> consecutive(Place place, const std::vector<std::int64_t>& sizes) {
  std::vector<Range> result;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    result.push_back({place, begin, begin + size});
    begin += size;
  }
  return result;
}

/// Messages are whole parts, so that sizes which differ are noticed.
CollectiveSchedule direct_all_to_all(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  const std::vector<Range> from = consecutive(Place::kInput, setting.send_elements);
  const std::vector<Range> to = consecutive(Place::kData, setting.recv_elements);
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : peers_of(setting)) parcels.push_back({peer, {from[peer]}});
  builder.send_in_turn(parcels);
  for (const int peer : peers_of(setting)) builder.recv(peer, to[peer]);
  builder.copy(to[setting.rank], from[setting.rank]);
  return builder.take();
}

CollectiveSchedule dissemination_barrier(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  std::vector<int> ranks(setting.num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  internal::disseminate(builder, ranks, setting.rank);
  return builder.take();
}

CollectiveSchedule two_hop_schedule(const CollectiveSetting& setting) {
  switch (setting.operation) {
    case Collective::kAllReduce:
      return two_hop_all_reduce(setting);
    case Collective::kReduce:
      return two_hop_reduce(setting);
    case Collective::kBroadcast:
      return two_hop_broadcast(setting);
    case Collective::kReduceScatter:
      return direct_reduce_scatter(setting);
    case Collective::kAllGather:
      return direct_all_gather(setting);
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return direct_all_to_all(setting);
    case Collective::kBarrier:
      return dissemination_barrier(setting);
  }
  internal::refuse_schedule(setting);
}

bool two_hop_can(const Description& /*task*/, int /*ranks_per_host*/) { return true; }

/// Of the busiest link of an all_reduce with reducers, one rank a host (chunk.h).
double reducer_bytes(const CostCase& m) {
  const double w = m.n - m.s;
  const double x = std::max(0.0, (w / m.s - 1) / (w - 2 + w * w / m.s));
  return (1 + (w - 2) * x) * m.bytes;
}

/// Where all give to all between hosts: bytes of time in which links idle, since who gets from many
/// waits for the queues of all. Nothing where connections' buffers hold the hop.
double queued(const CostCase& m, double hop_bytes) {
  constexpr double kBuffer = 96 * 1024;  // of a connection, as measured (benchmarks/results)
  const double buffers = m.is_one_host() ? 0 : std::max(0.0, m.n - m.sharing() - 1) * kBuffer;
  return std::clamp(hop_bytes - buffers, 0.0, buffers);
}

CostShare two_hop_share(const CostCase& m) {
  const double hop_bytes = m.to_all(m.bytes / m.n);
  switch (m.operation) {
    case Collective::kAllReduce:
      if (m.s > 0) return {2, reducer_bytes(m), m.bytes};
      return {2, 2 * hop_bytes + queued(m, hop_bytes), m.bytes};
    case Collective::kReduce:
      return {2, 2 * hop_bytes, m.bytes};
    case Collective::kReduceScatter:
      return {1, hop_bytes, m.bytes};
    case Collective::kAllGather:
      return {1, hop_bytes + queued(m, hop_bytes), 0};
    case Collective::kBroadcast:
      return {2, 2 * hop_bytes, 0};
    case Collective::kBarrier:
      return {std::ceil(std::log2(m.n)), 0, 0};
    default:
      return {1, hop_bytes, 0};
  }
}

double two_hop_seconds(const CostCase& m, const Costs& costs) {
  if (m.operation != Collective::kAllToAll) {
    return seconds_of(two_hop_share(m), m.link(costs), costs.gamma_s_per_byte);
  }
  const double behind = m.n - m.sharing();  // m.bytes is that of a part
  return seconds_of({1 + kNextMessage * (behind - 1), m.to_all(m.bytes)}, m.link(costs), 0) +
         seconds_of({kNextMessage * (m.sharing() - 1)}, costs.local, 0);
}

}  // namespace

const AlgorithmEntry kTwoHopEntry{.algorithm = Algorithm::kTwoHop,
                                  .name = "two_hop",
                                  .can = two_hop_can,
                                  .seconds = two_hop_seconds,
                                  .schedule = two_hop_schedule};

}  // namespace trireme::collectives
