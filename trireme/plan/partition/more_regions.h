#pragma once

#include <optional>

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with one stage that recomputes in regions, more than it has: that stage and number of regions which
/// leave the least excess of all ranks together, of equal ones the shorter step; nothing where none leaves less.
///
/// planned   the graph of the candidate's plan.
/// Cost      about ten forecasts for each stage of ranks that exceed their memory.
std::optional<Candidate> with_more_regions(const Problem& problem, const graph::Graph& planned,
                                           const Candidate& candidate);

/// The candidate whose stages that recompute have each the number of regions with which its ranks hold least.
///
/// Cost   about ten forecasts for each stage.
Candidate with_best_regions(const Problem& problem, const graph::Graph& planned,
                            Candidate candidate);

}  // namespace trireme::partition
