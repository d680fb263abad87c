#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/wire/collectives/algorithm.h"
#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/schedule/cost.h"
#include "trireme/wire/collectives/schedule/schedule.h"

/// The algorithms, each in the file of its name, and the table of them.
namespace trireme::collectives {

/// What a rank's schedule follows from. All ranks of a group have the same but for `rank`, and of an
/// exchange the sizes.
struct CollectiveSetting {
  Collective operation = Collective::kBarrier;
  Algorithm algorithm = Algorithm::kTwoHop;
  int num_ranks = 1;
  int rank = 0;
  std::int64_t count = 0;    ///< Elements of the data; of an all_to_all of equal parts, of one.
  std::int64_t segment = 1;  ///< Elements of a message, at most; at least 1.
  int ranks_per_host = 1;    ///< Divides the ranks; those of a host follow each other.
  int num_reducers = 0;      ///< The last ranks: they only sum for the others. all_reduce.
  int root = 0;              ///< Of reduce and broadcast.

  /// By rank: elements of the data, which do not overlap. reduce_scatter, all_gather.
  std::vector<Chunk> parts = {};

  // By rank, of any sizes: part i of the input goes to rank i, part i of the data comes from there;
  // parts follow each other. all_to_all, gather, scatter.
  std::vector<std::int64_t> send_elements = {};
  std::vector<std::int64_t> recv_elements = {};

  bool has_data(int of_rank) const { return of_rank < num_ranks - num_reducers; }
  bool operator==(const CollectiveSetting&) const = default;
};

/// All that an algorithm is, as its file defines it.
struct AlgorithmEntry {
  Algorithm algorithm;
  std::string_view name;

  /// As `is_eligible`, for types that have the task's reduction.
  bool (*can)(const Description& task, int ranks_per_host);

  /// As `predicted_seconds`, of what it can do among two ranks at least.
  double (*seconds)(const CostCase& of, const Costs& costs);

  /// One rank's part of what it can do. Each rank first sends to the one behind its own, so that not
  /// all send to one at once. Groups of one rank have nothing to do.
  CollectiveSchedule (*schedule)(const CollectiveSetting& setting);
};

extern const AlgorithmEntry kOneShotEntry;
extern const AlgorithmEntry kTwoHopEntry;
extern const AlgorithmEntry kHalvingDoublingEntry;
extern const AlgorithmEntry kRingEntry;
extern const AlgorithmEntry kTwoLevelEntry;

/// In the order of the enumeration.
inline constexpr std::array kAlgorithmTable = {
    &kOneShotEntry, &kTwoHopEntry, &kHalvingDoublingEntry, &kRingEntry, &kTwoLevelEntry};
static_assert(kAlgorithmTable.size() == kNumAlgorithms);

inline const AlgorithmEntry& entry_of(Algorithm algorithm) {
  return *kAlgorithmTable.at(static_cast<std::size_t>(algorithm));
}

/// kInvalidArgument where the setting's algorithm has none for its operation. Steps, bytes and
/// scratch are in docs/algorithms.md.
CollectiveSchedule make_schedule(const CollectiveSetting& setting);

/// In what an operation keeps partial results: what loses nothing, or where any order will do the
/// elements' own type, which is rounded.
Dtype partial_dtype(Dtype dtype, kernels::ReduceOp op, Order order);

// For the algorithms' files.
namespace internal {

/// chunk_of each rank, or what reducers leave of it.
std::vector<Chunk> chunks_of(const CollectiveSetting& setting);

/// The other ranks, starting behind `rank`.
std::vector<int> peers_of(const CollectiveSetting& setting);

/// Sends each other rank its part of the data: a segment to each, then the next.
void send_parts(ScheduleBuilder& builder, const CollectiveSetting& setting,
                std::span<const Chunk> parts);

/// A barrier of `ranks`, this one's place among them being `own`: in round k each tells the one 2^k
/// behind it. The data is one element, which is reduced over all of them, over some more than once:
/// by `or`.
void disseminate(ScheduleBuilder& builder, std::span<const int> ranks, int own);

inline Range data_range(const Chunk& chunk) { return {Place::kData, chunk.begin, chunk.end}; }

// ---- Of reductions

/// Whether partial results may be combined further with the bits of THE tree. Not where each is
/// rounded.
bool has_exact_partials(const Description& task);

/// Whether the sources of each step must be those of all ranks, in order: what is done to the sum
/// or to each source comes once.
bool needs_all_at_once(const Description& task);

/// Whether every order has the same bits, or none is asked for. Whole numbers wrap around.
bool is_order_free(const Description& task);

/// Whether there are several hosts of several ranks each.
bool has_two_levels(const Description& task, int ranks_per_host);

/// For an operation that the setting's algorithm cannot do.
[[noreturn]] void refuse_schedule(const CollectiveSetting& setting);

}  // namespace internal
}  // namespace trireme::collectives
