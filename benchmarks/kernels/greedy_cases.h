#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Greedy decoding of 16 utterances of 100 to 150 frames, by a model of 32 units that costs little
/// beside the search. Its numbers are small integers, so that every library has the same labels.
std::vector<CaseEntry> greedy_cases();

}  // namespace trireme::kernels::bench
