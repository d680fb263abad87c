#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/schedule/schedule.h"

/// The algorithms, as functions from numbers to one rank's schedule. All ranks of a group call the
/// same one with the same numbers but for `rank`. Groups of one rank have nothing to do.
///
/// Each first sends to the rank behind its own, so that not all send to one rank at once. Steps,
/// bytes and scratch are in docs/algorithms.md.
namespace trireme::collectives {

/// Whose schedule of how much.
struct Setting {
  int num_ranks;
  int rank;
  std::int64_t count;    ///< Elements of the data.
  std::int64_t segment;  ///< Elements of a message, at most; at least 1.
  int num_reducers = 0;  ///< The last ranks: they only sum for the others. two_hop_all_reduce.

  bool has_data(int of_rank) const { return of_rank < num_ranks - num_reducers; }
};

/// chunk_of each rank, or what reducers leave of it.
std::vector<Chunk> chunks_of(const Setting& setting);

// one_shot.cc
Schedule one_shot_all_reduce(const Setting& setting);
Schedule one_shot_reduce(const Setting& setting, int root);
Schedule one_shot_broadcast(const Setting& setting, int root);

// two_hop.cc. parts: element ranges of the data by rank, which do not overlap.
Schedule two_hop_all_reduce(const Setting& setting);
Schedule two_hop_reduce(const Setting& setting, int root);
Schedule two_hop_broadcast(const Setting& setting, int root);
/// The first hop: rank i gets part i; what else is in the data is left.
Schedule direct_reduce_scatter(const Setting& setting, std::span<const Chunk> parts);
/// The second hop: part i is there on rank i.
Schedule direct_all_gather(const Setting& setting, std::span<const Chunk> parts);

Schedule halving_doubling_all_reduce(const Setting& setting);

// ring.cc
Schedule ring_all_reduce(const Setting& setting);
Schedule ring_reduce_scatter(const Setting& setting, std::span<const Chunk> parts);
Schedule ring_all_gather(const Setting& setting, std::span<const Chunk> parts);

/// ranks_per_host   divides the ranks; those of a host follow each other.
Schedule two_level_all_reduce(const Setting& setting, int ranks_per_host);

/// Of any sizes: part i of the input goes to rank i, part i of the data comes from there; parts
/// follow each other. Messages are whole parts, so that sizes which differ are noticed.
struct ExchangeSizes {
  std::vector<std::int64_t> send_elements;  ///< By rank.
  std::vector<std::int64_t> recv_elements;
};
Schedule all_to_all_schedule(const Setting& setting, const ExchangeSizes& exchange);

/// Of equal parts, of `setting.count` elements each; ranks_per_host as above.
Schedule two_level_all_to_all(const Setting& setting, int ranks_per_host);

/// Dissemination: in round k each rank tells the one 2^k behind it. The data is one element, which
/// is reduced over all ranks, some of them more than once: by `or`.
Schedule barrier_schedule(const Setting& setting);

namespace internal {

/// The other ranks, starting behind `rank`.
std::vector<int> peers_of(const Setting& setting);

inline Range data_range(const Chunk& chunk) { return {Place::kData, chunk.begin, chunk.end}; }

}  // namespace internal
}  // namespace trireme::collectives
