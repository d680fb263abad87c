#pragma once

// The passes of boxes.h.

#include <cstdint>

#include "packs/vision/cuda/boxes.h"
#include "packs/vision/kernels/box_codes.h"
#include "packs/vision/kernels/box_overlap.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::vision::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

struct Overlap {
  const float *a, *b;
  std::int64_t num_b;
  float* overlaps;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, column] = divide(i, num_b);
    const float overlap = vision::internal::box_overlap(a + row * 4, b + column * 4);
    overlaps[i] = overlap == overlap ? overlap : 0;
  }
};

/// BoxCoding without std::array, whose functions are the host's.
struct Coding {
  float weights[4];
  float largest_log;

  explicit Coding(const BoxCoding& of)
      : weights{of.weights[0], of.weights[1], of.weights[2], of.weights[3]},
        largest_log(of.largest_log) {}
};

struct Encode {
  Coding coding;
  const float *boxes, *anchors;
  float* codes;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    vision::internal::encode_box(coding.weights, boxes + i * 4, anchors + i * 4, codes + i * 4);
  }
};

struct Decode {
  Coding coding;
  const float *codes, *anchors;
  float* boxes;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    vision::internal::decode_box(coding.weights, coding.largest_log, codes + i * 4, anchors + i * 4,
                                 boxes + i * 4);
  }
};

template <typename Each>
void box_overlaps_passes(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                         float* overlaps, const Each& each) {
  each(num_a * num_b, Overlap{a, b, num_b, overlaps});
}

template <typename Each>
void encode_boxes_passes(const BoxCoding& coding, const float* boxes, const float* anchors,
                         std::int64_t n, float* codes, const Each& each) {
  each(n, Encode{Coding(coding), boxes, anchors, codes});
}

template <typename Each>
void decode_boxes_passes(const BoxCoding& coding, const float* codes, const float* anchors,
                         std::int64_t n, float* boxes, const Each& each) {
  each(n, Decode{Coding(coding), codes, anchors, boxes});
}

}  // namespace trireme::vision::cuda::internal
