#include "trireme/kernels/detection/boxes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/base/error.h"
#include "trireme/kernels/detection/box_codes.h"
#include "trireme/kernels/detection/box_overlap.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

float area_of(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

TRIREME_INLINE_LOOP void overlaps_loop(const float* box, const float* __restrict others,
                                       std::int64_t n, float* __restrict overlaps) {
  const float own[] = {box[0], box[1], box[2], box[3]};
  for (std::int64_t i = 0; i < n; ++i) {
    const float overlap = internal::box_overlap(own, others + i * 4);
    overlaps[i] = overlap == overlap ? overlap : 0;
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

/// what        of the four numbers, which are not `expected`.
[[noreturn]] void refuse(const char* what, std::int64_t i, const char* expected,
                         const float* numbers) {
  throw Error(ErrorKind::kInvalidArgument,
              std::string(what) + " " + std::to_string(i) + " " + expected + ", got " +
                  std::to_string(numbers[0]) + " " + std::to_string(numbers[1]) + " " +
                  std::to_string(numbers[2]) + " " + std::to_string(numbers[3]));
}

void check_areas(const char* what, const float* boxes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float* box = boxes + i * 4;
    const bool has_area = box[2] > box[0] && box[3] > box[1] && area_of(box) < INFINITY;
    if (!has_area) refuse(what, i, "must have an area", box);
  }
}

/// A box may be empty.
void check_finite(const char* what, const float* boxes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    // Of coordinates that are not finite the area is not either: infinity * 0 is NaN.
    if (!std::isfinite(area_of(boxes + i * 4))) {
      refuse(what, i, "must have finite coordinates and area", boxes + i * 4);
    }
  }
}

}  // namespace

void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps) {
  check_finite("a: box", a, num_a);
  check_finite("b: box", b, num_b);
  const auto row = has_avx512() ? overlaps_avx512 : has_avx2() ? overlaps_avx2 : overlaps_loop;
  for (std::int64_t i = 0; i < num_a; ++i) row(a + i * 4, b, num_b, overlaps + i * num_b);
}

void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes) {
  check_areas("box", boxes, n);
  check_areas("anchor", anchors, n);
  for (std::int64_t i = 0; i < n; ++i) {
    internal::encode_box(coding.weights.data(), boxes + i * 4, anchors + i * 4, codes + i * 4);
  }
}

void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes) {
  check_areas("anchor", anchors, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto is_finite = [](float x) { return std::isfinite(x); };
    if (!std::all_of(codes + i * 4, codes + i * 4 + 4, is_finite)) {
      refuse("code", i, "must be finite", codes + i * 4);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    internal::decode_box(coding.weights.data(), coding.largest_log, codes + i * 4, anchors + i * 4,
                         boxes + i * 4);
  }
}

}  // namespace trireme::kernels
