#pragma once

#include <vector>

#include "benchmarks/kernels/case.h"

namespace trireme::kernels::bench {

/// COCO's evaluation at the size of its validation set: 5,000 images, 36,579 annotations, 80
/// classes; 500,000 detections as boxes, 100,000 as masks. Timed from loaded data to the 12
/// figures.
std::vector<CaseEntry> coco_cases();

}  // namespace trireme::kernels::bench
