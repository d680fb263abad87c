#pragma once

#include <ATen/core/Tensor.h>

#include "packs/vision/kernels/ssd_loss.h"

namespace trireme::vision {

/// What an SSD says of a batch, and what is on its images. The last three get no gradient.
struct SsdLossTensors {
  at::Tensor codes;    ///< f32 [B, A, 4], by `kSsdCoding`.
  at::Tensor logits;   ///< f32 [B, A, K], background as class 0.
  at::Tensor boxes;    ///< f32 [B, M, 4] x1, y1, x2, y2.
  at::Tensor labels;   ///< i64 [B, M], 1 to K - 1; the first 0 ends an image's boxes.
  at::Tensor anchors;  ///< f32 [A, 4], in the boxes' unit.
};

/// Of each image.
struct SsdLossSums {
  at::Tensor boxes;        ///< f32 [B], of the matched anchors.
  at::Tensor classes;      ///< f32 [B], of the matched anchors and hard negatives.
  at::Tensor num_matched;  ///< i64 [B], without a gradient.
};

/// Matches, chooses hard negatives and sums both losses, image by image: one node of a recording (kernels/ssd_loss.h). The
/// backward computes only the rows that were chosen.
///
/// Errors   kInvalidArgument for other types and shapes, and as of the kernel.
SsdLossSums ssd_loss(const SsdLossTensors& tensors, const SsdLossOptions& options = {});

}  // namespace trireme::vision
