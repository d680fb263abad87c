#pragma once

#include <array>
#include <cstddef>

#include "trireme/kernels/reduce/element.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {

/// THE tree over the first `count` of a few values, for a GPU, which keeps them in registers as
/// long as every index is a constant. Aligned groups of 2, 4, 8 neighbours merge; what has no
/// neighbour waits. Five values: 0+1  2+3  4, then (0,1)+(2,3)  4, then (0..3)+4.
///
/// count   1 to Most, which is a power of two.
template <ReduceOp Op, typename Element, std::size_t Most, std::size_t Begin = 0,
          std::size_t Span = Most>
TRIREME_INLINE_LOOP constexpr Wide<Element> strided_tree(
    const std::array<Wide<Element>, Most>& values, int count) {
  if constexpr (Span == 1) {
    return values[Begin];
  } else {
    constexpr std::size_t kHalf = Span / 2;
    const Wide<Element> left = strided_tree<Op, Element, Most, Begin, kHalf>(values, count);
    if (static_cast<int>(Begin + kHalf) >= count) return left;
    return merged<Op, Element>(
        left, strided_tree<Op, Element, Most, Begin + kHalf, kHalf>(values, count));
  }
}

}  // namespace trireme::kernels
