#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// One step over the 25.6 M parameters of ResNet-50, 161 tensors.
std::vector<CaseEntry> optimizer_cases();

}  // namespace trireme::kernels::bench
