#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Components of a volume with two labels, with and without their map; crops around them; Dice of
/// labels and of probabilities; windows that overlap, added up.
std::vector<CaseEntry> volume_cases();

}  // namespace trireme::kernels::bench
