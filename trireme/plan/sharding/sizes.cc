#include "trireme/plan/sharding/sizes.h"

namespace trireme::sharding {

using graph::Size;

Size times(const Size& a, const Size& b) {
  return b.is_fixed() ? Size{a.per_sample * b.fixed, a.fixed * b.fixed}
                      : Size{b.per_sample * a.fixed, b.fixed * a.fixed};
}

std::vector<Size> natural_strides(const std::vector<Size>& shape) {
  std::vector<Size> strides(shape.size());
  Size step{0, 1};
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = times(step, shape[i]);
  }
  return strides;
}

}  // namespace trireme::sharding
