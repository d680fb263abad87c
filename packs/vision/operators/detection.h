#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trireme::vision {

struct RoiAlignOptions {
  std::int64_t pooled_height = 7;
  std::int64_t pooled_width = 7;
  double scale = 1;              ///< From the regions' units to pixels of the features.
  std::int64_t num_samples = 0;  ///< Along each side of a bin; 0: one for each pixel it covers.
  bool is_aligned = false;
};

/// Regions of feature maps, pooled by bilinear samples; formula in kernels/roi_align.h.
///
/// features  f32 [B, C, height, width]; channels last saves a copy.
/// regions   f32 [R, 5] index in the batch, x1, y1, x2, y2; they get no gradient.
/// Returns   f32 [R, C, pooled_height, pooled_width], channels last.
/// Errors    kInvalidArgument, naming the region that is in no feature map or not finite.
at::Tensor roi_align(const at::Tensor& features, const at::Tensor& regions,
                     const RoiAlignOptions& options = {});

/// As many places as asked for, and how many of them are used.
struct Chosen {
  at::Tensor places;  ///< i64 [B, capacity]
  at::Tensor counts;  ///< i64 [B]
};

struct NmsOptions {
  double threshold = 0.5;
  std::int64_t capacity = 100;
};

/// Non-maximum suppression by class, image by image (kernels/nms.h).
///
/// boxes    f32 [B, n, 4] x1, y1, x2, y2; scores f32 [B, n]; classes integers [B, n].
/// Returns  kept boxes in order of falling scores; places behind them are 0.
Chosen fixed_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& classes,
                 const NmsOptions& options = {});

/// SSD's choice of anchors: those that are matched, and `ratio` times as many of the others, those
/// with the largest losses (kernels/selection.h).
///
/// losses   f32 [B, n]; is_matched bool [B, n].
/// Returns  bool [B, n].
at::Tensor hard_negatives(const at::Tensor& losses, const at::Tensor& is_matched, double ratio);

/// Indices of true elements, row by row; places left over repeat them from the first on.
///
/// values   bool [B, n].
Chosen fixed_nonzero(const at::Tensor& values, std::int64_t capacity);

}  // namespace trireme::vision
