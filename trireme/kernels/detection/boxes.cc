#include "trireme/kernels/detection/boxes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/base/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

float area_of(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

TRIREME_INLINE_LOOP void overlaps_loop(const float* box, const float* __restrict others,
                                       std::int64_t n, float* __restrict overlaps) {
  const float x1 = box[0], y1 = box[1], x2 = box[2], y2 = box[3];
  const float area = (x2 - x1) * (y2 - y1);
  for (std::int64_t i = 0; i < n; ++i) {
    const float* other = others + i * 4;
    const float left = other[0] > x1 ? other[0] : x1;
    const float top = other[1] > y1 ? other[1] : y1;
    const float right = other[2] < x2 ? other[2] : x2;
    const float bottom = other[3] < y2 ? other[3] : y2;
    const float width = right - left > 0 ? right - left : 0;
    const float height = bottom - top > 0 ? bottom - top : 0;
    const float inter = width * height;
    const float both = area + (other[2] - other[0]) * (other[3] - other[1]) - inter;
    overlaps[i] = both > 0 ? inter / both : 0;
  }
}

TRIREME_AVX2 void overlaps_avx2(const float* box, const float* others, std::int64_t n,
                                float* overlaps) {
  overlaps_loop(box, others, n, overlaps);
}
TRIREME_AVX512 void overlaps_avx512(const float* box, const float* others, std::int64_t n,
                                    float* overlaps) {
  overlaps_loop(box, others, n, overlaps);
}

/// A box by its centre.
struct Centered {
  float x, y, width, height;
};

Centered centered(const float* box) {
  const float width = box[2] - box[0];
  const float height = box[3] - box[1];
  return {box[0] + 0.5F * width, box[1] + 0.5F * height, width, height};
}

void check_area(const char* what, const float* box, std::int64_t i) {
  if (box[2] > box[0] && box[3] > box[1] && area_of(box) < INFINITY) return;
  throw Error(ErrorKind::kInvalidArgument,
              std::string(what) + " " + std::to_string(i) + " must have an area, got " +
                  std::to_string(box[0]) + " " + std::to_string(box[1]) + " " +
                  std::to_string(box[2]) + " " + std::to_string(box[3]));
}

}  // namespace

void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps) {
  const auto row = has_avx512() ? overlaps_avx512 : has_avx2() ? overlaps_avx2 : overlaps_loop;
  for (std::int64_t i = 0; i < num_a; ++i) row(a + i * 4, b, num_b, overlaps + i * num_b);
}

void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes) {
  for (std::int64_t i = 0; i < n; ++i) {
    check_area("box", boxes + i * 4, i);
    check_area("anchor", anchors + i * 4, i);
    const Centered box = centered(boxes + i * 4);
    const Centered anchor = centered(anchors + i * 4);
    codes[i * 4 + 0] = coding.weights[0] * (box.x - anchor.x) / anchor.width;
    codes[i * 4 + 1] = coding.weights[1] * (box.y - anchor.y) / anchor.height;
    codes[i * 4 + 2] = coding.weights[2] * std::log(box.width / anchor.width);
    codes[i * 4 + 3] = coding.weights[3] * std::log(box.height / anchor.height);
  }
}

void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float* code = codes + i * 4;
    const Centered anchor = centered(anchors + i * 4);
    const float x = code[0] / coding.weights[0] * anchor.width + anchor.x;
    const float y = code[1] / coding.weights[1] * anchor.height + anchor.y;
    const float width =
        std::exp(std::min(code[2] / coding.weights[2], coding.largest_log)) * anchor.width;
    const float height =
        std::exp(std::min(code[3] / coding.weights[3], coding.largest_log)) * anchor.height;
    boxes[i * 4 + 0] = x - 0.5F * width;
    boxes[i * 4 + 1] = y - 0.5F * height;
    boxes[i * 4 + 2] = x + 0.5F * width;
    boxes[i * 4 + 3] = y + 0.5F * height;
  }
}

}  // namespace trireme::kernels
