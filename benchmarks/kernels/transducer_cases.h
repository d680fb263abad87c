#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Forward and backward of the transducer's loss and joint, for 16 utterances of LibriSpeech's
/// usual length.
std::vector<CaseEntry> transducer_cases();

}  // namespace trireme::kernels::bench
