#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Selections of fixed size: hard negatives of a batch of SSD's, places of what is not zero, random
/// permutations.
std::vector<CaseEntry> selection_cases();

}  // namespace trireme::kernels::bench
