#pragma once

#include <type_traits>

#include "trireme/kernels/half.h"

namespace trireme::speech::internal {

/// The other way of to_f32, for loops over any element type.
template <typename T>
constexpr T from_f32(float x) {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    return kernels::to_bf16(x);
  } else {
    return x;
  }
}

}  // namespace trireme::speech::internal
