#pragma once

#include "trireme/kernels/half.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::internal {

/// State is kept as f32, f64 or bf16 (rounded to nearest, ties to even).
TRIREME_INLINE_LOOP void put(float x, float& kept) { kept = x; }
TRIREME_INLINE_LOOP void put(double x, double& kept) { kept = x; }
TRIREME_INLINE_LOOP void put(float x, Bf16& kept) { kept = to_bf16(x); }

}  // namespace trireme::kernels::internal
