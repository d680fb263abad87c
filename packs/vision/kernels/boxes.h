#pragma once

#include <array>
#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::vision {

/// overlaps[i, j] = inter / (area(a_i) + area(b_j) - inter); 0 where both are empty. Each operation
/// rounds to f32, as torchvision's box_iou.
///
/// a, b       [num_a, 4], [num_b, 4] x1, y1, x2, y2 in one unit.
/// overlaps   [num_a, num_b], written.
/// Errors     kInvalidArgument naming the box with a coordinate or an area that is not finite.
/// Cost       num_a * num_b, in vectors; reads b once for each box of a. Threads share it, here and
///            below, where there are many; they change nothing.
void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps, const kernels::Spread& spread = kernels::on_caller);

/// How a box is written relative to a reference box (an anchor):
///
///     dx = wx (center_x - anchor_x) / anchor_width      dw = ww log(width / anchor_width)
///     dy = wy (center_y - anchor_y) / anchor_height     dh = wh log(height / anchor_height)
///
/// Source: Girshick et al., "Rich feature hierarchies", CVPR 2014, appendix C. SSD's variances 0.1
/// and 0.2 are the weights 10, 10, 5, 5.
struct BoxCoding {
  std::array<float, 4> weights = {1, 1, 1, 1};  ///< wx, wy, ww, wh
  float largest_log = 4.135166556742356F;  ///< Decoding clamps dw / ww, dh / wh: log(1000 / 16).
};

/// boxes, anchors   [n, 4] x1, y1, x2, y2.
/// codes            [n, 4] dx, dy, dw, dh, written.
/// Errors           kInvalidArgument, before anything is written, naming the box or anchor that has
///                  no area, or is not finite.
/// Cost             two logarithms of each box.
void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes, const kernels::Spread& spread = kernels::on_caller);

/// The inverse.
///
/// Errors   kInvalidArgument, before anything is written, naming the code that is not finite, or the
///          anchor that has no area.
/// Cost     two exponentials of each box.
void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes, const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::vision
