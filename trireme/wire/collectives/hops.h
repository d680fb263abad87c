#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/chunk.h"

/// The algorithms. Each runs one operation of a group from start to end on the group's thread, and
/// leaves nothing under way. Four ranks, all_reduce of buffer `abcd`, one letter per chunk:
///
///     rank 0 has a b c d     first hop: chunk i of every     rank 0 sums a     second hop: each
///     rank 1 has a b c d     rank goes to rank i             rank 1 sums b     sends its sum to
///     rank 2 has a b c d     (reduce_scatter)                rank 2 sums c     all others
///     rank 3 has a b c d                                     rank 3 sums d     (all_gather)
namespace trireme::collectives {

template <typename T>
void all_reduce(Call& call, std::span<T> data);

template <typename T>
void reduce_scatter(Call& call, std::span<T> data);

void all_gather(Call& call, std::span<const std::byte> mine, std::span<std::byte> all);

void broadcast(Call& call, std::span<std::byte> data, int root);

/// Nothing but the agreement, after which all ranks have arrived.
void barrier(Call& call);

/// Parts of the above.
namespace internal {

/// First hop of a sum: this rank's chunk of `data` becomes the sum. Agrees in between.
template <typename T>
void sum_own_chunk(Call& call, std::span<T> data);

/// Second hop: each rank's chunk of `data` to all others. An all_gather without copies.
template <typename T>
void spread_chunks(Call& call, std::span<T> data);

/// Elements of group rank `index` in `data`.
template <typename T>
std::span<T> part_of(const Call& call, std::span<T> data, int index) {
  const Chunk chunk =
      chunk_of(static_cast<std::int64_t>(data.size()), call.members().size(), index);
  return data.subspan(static_cast<std::size_t>(chunk.begin),
                      static_cast<std::size_t>(chunk.size()));
}

}  // namespace internal
}  // namespace trireme::collectives
