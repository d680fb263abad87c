#pragma once

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with stages that recompute, as the options say: all that can; or, where it exceeds the memory, one
/// stage after another, each time the one that leaves the least excess of all ranks together, until it fits or none
/// helps.
///
/// Cost   a forecast for each stage of ranks that exceed their memory, for each stage that is chosen.
Candidate with_recompute(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
