#pragma once

#include <ATen/core/Tensor.h>

#include "packs/vision/kernels/ssd_matching.h"

namespace trireme::vision {

/// What each anchor of each image should say.
struct SsdTargets {
  at::Tensor classes;  ///< i64 [B, A]; 0 is background.
  at::Tensor codes;    ///< f32 [B, A, 4], of the matched box by `kSsdCoding`; 0 for background.
};

/// Matches anchors to the boxes of each image as SSD does (kernels/matching.h: match_ssd).
///
/// boxes       f32 [B, M, 4] x1, y1, x2, y2; none gets a gradient.
/// labels      i64 [B, M], from 1 on; the first 0 ends an image's boxes.
/// anchors     f32 [A, 4], in the boxes' unit.
/// threshold   anchors whose overlap exceeds it match.
/// Errors      kInvalidArgument, naming the image, for a box or anchor without area or not finite.
SsdTargets ssd_targets(const at::Tensor& boxes, const at::Tensor& labels, const at::Tensor& anchors,
                       double threshold = 0.5);

}  // namespace trireme::vision
