#pragma once

#include <cstdint>

#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// All kinds together, of the rank that has most; 0 where there is none. A sum that a 64-bit number
/// does not hold is its largest.
std::int64_t largest_peak_bytes(const PeakBytes& peak_bytes);

}  // namespace trireme::layout
