#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Log-mel features of 15 seconds; word errors of 10,000 utterances of 10 to 30 words, one in ten words wrong.
std::vector<CaseEntry> speech_cases();

}  // namespace trireme::kernels::bench
