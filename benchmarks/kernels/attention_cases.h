#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Forward and backward of attention at BERT's sizes: 4 sequences of 512 tokens, 16 heads of 64.
std::vector<CaseEntry> attention_cases();

}  // namespace trireme::kernels::bench
