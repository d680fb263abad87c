#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// ROC AUC of ten million probabilities, a quarter of them positives.
std::vector<CaseEntry> ranking_cases();

}  // namespace trireme::kernels::bench
