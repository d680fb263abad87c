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
#include <functional>

#include "trireme/wire/collectives/schedule/generators.h"
#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {
namespace {

using internal::data_range;
using internal::peers_of;

/// What is done with each segment of the own part: where the sum goes, and what follows it.
using Target = std::function<Range(const Range& segment)>;
using Next = std::function<void(const Range& sum)>;

struct FirstHop {
  std::span<const Chunk> parts;
  Target target = [](const Range& segment) { return segment; };
  Next next = [](const Range&) {};
  bool is_last = false;  ///< Nothing follows: sums may come late.
};

void send_parts(ScheduleBuilder& builder, const Setting& setting, std::span<const Chunk> parts) {
  std::vector<std::vector<Range>> segments;
  std::size_t most = 0;
  for (const Chunk& part : parts) {
    segments.push_back(segments_of(data_range(part), setting.segment));
    most = std::max(most, segments.back().size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    for (const int peer : peers_of(setting)) {
      if (i < segments[peer].size()) builder.send(peer, segments[peer][i]);
    }
  }
}

void send_parts_in_turn(ScheduleBuilder& builder, const Setting& setting,
                        std::span<const Chunk> parts) {
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : peers_of(setting)) {
    parcels.push_back({peer, segments_of(data_range(parts[peer]), setting.segment)});
  }
  builder.send_in_turn(parcels);
}

/// Other ranks that give and get data.
std::vector<int> givers_of(const Setting& setting) {
  std::vector<int> givers = peers_of(setting);
  std::erase_if(givers, [&](int peer) { return !setting.has_data(peer); });
  return givers;
}

void first_hop(ScheduleBuilder& builder, const Setting& setting, const FirstHop& hop) {
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
void recv_parts(ScheduleBuilder& builder, const Setting& setting, std::span<const Chunk> parts,
                const std::vector<int>& peers) {
  for (const int peer : peers) {
    for (const Range& segment : segments_of(data_range(parts[peer]), setting.segment)) {
      builder.recv(peer, segment);
    }
  }
}

}  // namespace

std::vector<Chunk> chunks_of(const Setting& setting) {
  return reducer_chunks(setting.count, setting.num_ranks, setting.num_reducers);
}

std::vector<int> internal::peers_of(const Setting& setting) {
  std::vector<int> result;
  for (int i = 1; i < setting.num_ranks; ++i) {
    result.push_back((setting.rank + i) % setting.num_ranks);
  }
  return result;
}

Schedule two_hop_all_reduce(const Setting& setting) {
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

Schedule two_hop_reduce(const Setting& setting, int root) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  const std::vector<Chunk> chunks = chunks_of(setting);
  if (setting.rank == root) {
    first_hop(builder, setting, {.parts = chunks});
    recv_parts(builder, setting, chunks, peers_of(setting));
    return builder.take();
  }
  // The data of the others is left.
  const Target target = [&](const Range& segment) { return builder.scratch(segment.size()); };
  const Next next = [&](const Range& sum) { builder.send(root, sum); };
  first_hop(builder, setting, {.parts = chunks, .target = target, .next = next});
  return builder.take();
}

Schedule two_hop_broadcast(const Setting& setting, int root) {
  ScheduleBuilder builder;
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

Schedule direct_reduce_scatter(const Setting& setting, std::span<const Chunk> parts) {
  ScheduleBuilder builder;
  if (setting.num_ranks > 1) first_hop(builder, setting, {.parts = parts, .is_last = true});
  return builder.take();
}

Schedule direct_all_gather(const Setting& setting, std::span<const Chunk> parts) {
  ScheduleBuilder builder;
  const std::vector<Range> own = segments_of(data_range(parts[setting.rank]), setting.segment);
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : peers_of(setting)) parcels.push_back({peer, own});
  builder.send_in_turn(parcels);
  recv_parts(builder, setting, parts, peers_of(setting));
  return builder.take();
}

}  // namespace trireme::collectives
