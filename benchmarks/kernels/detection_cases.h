#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// Non-maximum suppression of SSD's boxes and of 80 classes, RoIAlign of Mask R-CNN's box head.
std::vector<CaseEntry> detection_cases();

}  // namespace trireme::kernels::bench
