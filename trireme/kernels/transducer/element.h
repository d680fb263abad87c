#pragma once

#include <type_traits>

#include "trireme/kernels/half.h"

namespace trireme::kernels::internal {

/// The other way of to_f32, for loops over any element type.
template <typename T>
constexpr T from_f32(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(x);
  } else {
    return x;
  }
}

}  // namespace trireme::kernels::internal
