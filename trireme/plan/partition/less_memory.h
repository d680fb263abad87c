#pragma once

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with stages that recompute or offload, as the options say: all that can; or, where it exceeds the
/// memory, one stage after another, each time the one that leaves the least excess of all ranks together, by the means
/// whose step is shorter, until it fits or none helps; then by recomputing in regions (more_regions.h). Cuts were searched for stages that keep all: where none helps, other
/// cuts are tried, all where they are few, for stages that hold as little as they may: recomputed whole, then in regions.
///
/// Cost   one or two forecasts for each stage of ranks that exceed their memory, for each stage that is chosen; where it
///        does not fit then, some hundreds, fewer of large graphs.
Candidate with_less_memory(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
