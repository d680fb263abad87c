#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Kernels as models call them: torch operators with autograd, which allocate what they make, with
/// the inputs and peers of the kernels' own cases; and what is an operator alone. None where the
/// build has no torch.
std::vector<CaseEntry> operator_cases();

}  // namespace trireme::kernels::bench
