#include "trireme/plan/layout/peak.h"

#include <algorithm>
#include <limits>

namespace trireme::layout {

std::int64_t largest_peak_bytes(const PeakBytes& peak_bytes) {
  std::int64_t largest = 0;
  for (const auto& rank : peak_bytes) {
    std::int64_t sum = 0;
    for (const auto& [kind, bytes] : rank) {
      if (__builtin_add_overflow(sum, bytes, &sum)) sum = std::numeric_limits<std::int64_t>::max();
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace trireme::layout
