#pragma once

// The overlap of two boxes, on processors and on GPUs (cuda/).

#include "trireme/kernels/simd.h"

namespace trireme::vision::internal {

/// a, b      x1, y1, x2, y2.
/// Returns   inter / (area(a) + area(b) - inter), each operation rounded to f32; NaN where both are
///           empty.
TRIREME_INLINE_LOOP float box_overlap(const float* a, const float* b) {
  const float left = b[0] > a[0] ? b[0] : a[0];
  const float top = b[1] > a[1] ? b[1] : a[1];
  const float right = b[2] < a[2] ? b[2] : a[2];
  const float bottom = b[3] < a[3] ? b[3] : a[3];
  const float width = right - left > 0 ? right - left : 0;
  const float height = bottom - top > 0 ? bottom - top : 0;
  const float inter = width * height;
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]);
  const float area_b = (b[2] - b[0]) * (b[3] - b[1]);
  return inter / (area_a + area_b - inter);
}

}  // namespace trireme::vision::internal
