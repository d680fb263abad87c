#pragma once

// A box's code and back, on processors and on GPUs (cuda/).

#include <algorithm>
#include <cmath>

#include "packs/vision/kernels/boxes.h"
#include "trireme/kernels/host_device.h"

namespace trireme::vision::internal {

/// A box by its centre.
struct Centered {
  float x, y, width, height;
};

TRIREME_HOST_DEVICE inline Centered centered(const float* box) {
  const float width = box[2] - box[0];
  const float height = box[3] - box[1];
  return {box[0] + 0.5F * width, box[1] + 0.5F * height, width, height};
}

TRIREME_HOST_DEVICE inline void encode_box(const float* weights, const float* box,
                                           const float* anchor, float* code) {
  const Centered own = centered(box), reference = centered(anchor);
  code[0] = weights[0] * (own.x - reference.x) / reference.width;
  code[1] = weights[1] * (own.y - reference.y) / reference.height;
  code[2] = weights[2] * std::log(own.width / reference.width);
  code[3] = weights[3] * std::log(own.height / reference.height);
}

TRIREME_HOST_DEVICE inline void decode_box(const float* weights, float largest_log,
                                           const float* code, const float* anchor, float* box) {
  const Centered reference = centered(anchor);
  const float x = code[0] / weights[0] * reference.width + reference.x;
  const float y = code[1] / weights[1] * reference.height + reference.y;
  const float log_width = code[2] / weights[2], log_height = code[3] / weights[3];
  const float width = std::exp(log_width < largest_log ? log_width : largest_log) * reference.width;
  const float height =
      std::exp(log_height < largest_log ? log_height : largest_log) * reference.height;
  box[0] = x - 0.5F * width;
  box[1] = y - 0.5F * height;
  box[2] = x + 0.5F * width;
  box[3] = y + 0.5F * height;
}

}  // namespace trireme::vision::internal
