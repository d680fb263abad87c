#pragma once

#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::vision {

/// Regions of feature maps, pooled to a grid by the mean of bilinear samples.
///
///     y(p, s) = y1 * scale - offset + (p + (s + 1/2) / samples) * height / pooled_height
///     out[r, p, q, c] = mean over samples s, t of bilinear(features[batch r, :, :, c],
///                                                          y(p, s), x(q, t))
///
/// offset is 1/2 where `is_aligned`; else it is 0 and a region is at least 1 pixel high and wide. A
/// sample beyond [-1, H] x [-1, W] counts as 0, one outside of the centres of pixels takes the
/// nearest. As torchvision's roi_align, but for the order of additions.
///
/// Source: He et al., "Mask R-CNN", ICCV 2017, section 3.
struct RoiAlignSettings {
  std::int64_t pooled_height = 7;
  std::int64_t pooled_width = 7;
  double scale = 1;              ///< From the regions' units to pixels of the map; above 0.
  std::int64_t num_samples = 0;  ///< Along each side of a bin; 0: one for each pixel it covers.
  bool is_aligned = false;
};

struct FeatureShape {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
};

/// features   [batch, height, width, channels], channels last.
/// regions    [num_regions, 5] index in the batch, x1, y1, x2, y2.
/// out        [num_regions, pooled_height, pooled_width, channels], written.
/// Errors     kInvalidArgument naming the region that is in no feature map, or not finite when
///            scaled, or that has bins of more than 2^23 pixels with a sample for each; for a scale
///            that is not finite and above 0; for a grid without bins.
/// Cost       4 samples^2 multiply-adds for each output, those on the map alone: a region far larger
///            than the map costs what the map does. Its pixels are read once from memory.
void roi_align(const RoiAlignSettings& options, const FeatureShape& shape, const float* features,
               const float* regions, std::int64_t num_regions, float* out,
               const kernels::Spread& spread = kernels::on_caller);

/// gradient_out        [num_regions, pooled_height, pooled_width, channels].
/// gradient_features   [batch, height, width, channels], added to, in order of the regions.
/// Threads share the feature maps and their channels, 64 at a time.
void roi_align_backward(const RoiAlignSettings& options, const FeatureShape& shape,
                        const float* gradient_out, const float* regions, std::int64_t num_regions,
                        float* gradient_features,
                        const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::vision
