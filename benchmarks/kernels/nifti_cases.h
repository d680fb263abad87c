#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// A computed tomogram of 16 million voxels read from a file, packed and not.
std::vector<CaseEntry> nifti_cases();

}  // namespace trireme::kernels::bench
