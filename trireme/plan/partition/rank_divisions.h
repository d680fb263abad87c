#pragma once

#include <cstddef>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// Longest pipeline of such plans.
inline constexpr int kMostPositions = 8;

/// Positions of the pipeline with different numbers of ranks: where a stage cannot be cut, or few cuts are even, more ranks
/// run it. Two ranks for the first of two stages, one for the second, where that has half the work:
///
///     ranks by position   2 1        two replicas: the last rank runs its stage for both
///
/// The data replicas are as many as the position with most ranks has; every other number divides it.
using RanksByPosition = std::vector<int>;

/// All ways to give `num_ranks` ranks to the positions of a pipeline that keep the bits of one rank, or as many as are
/// looked at: but for those with as many ranks everywhere. In the order of their numbers of positions.
///
/// most_positions   of the pipeline.
std::vector<RanksByPosition> uneven_divisions(const PartitionOptions& options, int num_ranks,
                                              int most_positions);

/// Forward and backward of the nodes before each cut, and where cuts may fall.
struct WorkChain {
  WorkChain(const graph::Graph& planned, const profile::Profile& profile);

  std::vector<int> cuts;
  std::vector<double> before_us;  ///< By cut.
  double total_us = 0;
};

/// A division with the cuts under which its slowest rank has least to do.
struct Division {
  RanksByPosition ranks;
  std::vector<std::size_t> cuts;  ///< Indices in the chain.
  double bound_us = 0;            ///< Of its step, whatever the cuts.
  double guess_us = 0;            ///< And what comes before and after the slowest rank's work.
};

/// Of one number of ranks the divisions that promise most, the best first.
///
/// whole   the options and ranks. most   that are returned.
std::vector<Division> promising_divisions(const Problem& whole, const WorkChain& chain,
                                          int num_ranks, std::size_t most);

}  // namespace trireme::partition
