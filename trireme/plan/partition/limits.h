#pragma once

#include <string>
#include <vector>

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// What limits each stage, one line for people: memory, its own work, or another stage.
std::vector<std::string> stage_limits(const Problem& problem, const Candidate& candidate);

/// Why the candidate does not fit: bytes over the limit on its worst stage, the largest kinds, and
/// what would help.
std::string does_not_fit(const Problem& problem, const Candidate& candidate);

}  // namespace trireme::partition
