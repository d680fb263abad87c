#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// BN + Add + ReLU of ResNet-50's first level, forward and backward, in both layouts.
std::vector<CaseEntry> normalization_cases();

}  // namespace trireme::kernels::bench
