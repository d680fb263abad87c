#pragma once

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// Whether some rank holds more than half of what it may: cuts and schedules that are faster may hold too much.
bool is_tight(const Problem& problem, const Candidate& candidate);

/// The candidate with stages that recompute or offload, as the options say: all that can; or, where it exceeds the
/// memory, one stage after another, each time the one that leaves the least excess of all ranks together, by the means
/// whose step is shorter, until it fits or none helps; then by recomputing in regions (more_regions.h). Cuts were
/// searched for stages that keep all: so others are tried, all where they are few, for stages that hold as little as they
/// may, which then keep what they can: recomputed whole, and where none helps, in regions. They are also where it fits,
/// but others that would be faster may not (`is_tight`).
///
/// most_us   steps as long as this are of no use: cuts with these are not looked at.
/// Cost   one or two forecasts for each stage of ranks that exceed their memory, for each stage that is chosen; where it
///        does not fit then, some hundreds, fewer of large graphs.
Candidate with_less_memory(const Problem& problem, Candidate candidate,
                           double most_us = kUnlimited);

}  // namespace trireme::partition
