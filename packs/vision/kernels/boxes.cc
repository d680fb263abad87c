#include "packs/vision/kernels/boxes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "packs/vision/kernels/box_codes.h"
#include "packs/vision/kernels/box_overlap.h"
#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision {
namespace {

/// What a thread takes at a time, and from how many on threads are made: some 100 us.
constexpr std::int64_t kBoxesOfPiece = 8192;
constexpr std::int64_t kOthersOfPiece = 16'384;
constexpr std::int64_t kWorthOverlaps = std::int64_t{1} << 18;

/// Calls body(begin, end) for pieces of n boxes.
template <typename Body>
void for_each_piece(std::int64_t n, const kernels::Spread& spread, const Body& body) {
  const std::int64_t num_pieces = (n + kBoxesOfPiece - 1) / kBoxesOfPiece;
  kernels::spread_or_caller(spread, num_pieces, 2)(num_pieces, [&](std::int64_t piece) {
    body(piece * kBoxesOfPiece, std::min((piece + 1) * kBoxesOfPiece, n));
  });
}

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

/// Calls `refuse_at(i)` for the first i < n that is not good, if there is one.
template <typename IsGood, typename RefuseAt>
void check_all(std::int64_t n, const kernels::Spread& spread, const IsGood& is_good,
               const RefuseAt& refuse_at) {
  std::atomic<bool> has_bad = false;
  for_each_piece(n, spread, [&](std::int64_t begin, std::int64_t end) {
    bool all_good = true;
    for (std::int64_t i = begin; i < end; ++i) all_good &= is_good(i);
    if (!all_good) has_bad = true;
  });
  for (std::int64_t i = 0; has_bad && i < n; ++i) {
    if (!is_good(i)) refuse_at(i);
  }
}

void check_areas(const char* what, const float* boxes, std::int64_t n,
                 const kernels::Spread& spread) {
  const auto has_area = [boxes](std::int64_t i) {
    const float* box = boxes + i * 4;
    return box[2] > box[0] && box[3] > box[1] && area_of(box) < INFINITY;
  };
  check_all(n, spread, has_area,
            [&](std::int64_t i) { refuse(what, i, "must have an area", boxes + i * 4); });
}

/// A box may be empty.
void check_finite(const char* what, const float* boxes, std::int64_t n) {
  // Of coordinates that are not finite the area is not either: infinity * 0 is NaN.
  check_all(
      n, kernels::on_caller,
      [boxes](std::int64_t i) { return std::isfinite(area_of(boxes + i * 4)); },
      [&](std::int64_t i) {
        refuse(what, i, "must have finite coordinates and area", boxes + i * 4);
      });
}

}  // namespace

void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps, const kernels::Spread& spread) {
  check_finite("a: box", a, num_a);
  check_finite("b: box", b, num_b);
  const auto row = kernels::has_avx512() ? overlaps_avx512
                   : kernels::has_avx2() ? overlaps_avx2
                                         : overlaps_loop;
  const std::int64_t num_blocks = (num_b + kOthersOfPiece - 1) / kOthersOfPiece;
  kernels::spread_or_caller(spread, num_a * num_b, kWorthOverlaps)(
      num_a * num_blocks, [&](std::int64_t i) {
        const std::int64_t own = i / num_blocks, begin = i % num_blocks * kOthersOfPiece;
        row(a + own * 4, b + begin * 4, std::min(kOthersOfPiece, num_b - begin),
            overlaps + own * num_b + begin);
      });
}

void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes, const kernels::Spread& spread) {
  check_areas("box", boxes, n, spread);
  check_areas("anchor", anchors, n, spread);
  for_each_piece(n, spread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      internal::encode_box(coding.weights.data(), boxes + i * 4, anchors + i * 4, codes + i * 4);
    }
  });
}

void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes, const kernels::Spread& spread) {
  check_areas("anchor", anchors, n, spread);
  const auto is_finite = [codes](std::int64_t i) {
    return std::all_of(codes + i * 4, codes + i * 4 + 4, [](float x) { return std::isfinite(x); });
  };
  check_all(n, spread, is_finite,
            [&](std::int64_t i) { refuse("code", i, "must be finite", codes + i * 4); });
  for_each_piece(n, spread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      internal::decode_box(coding.weights.data(), coding.largest_log, codes + i * 4,
                           anchors + i * 4, boxes + i * 4);
    }
  });
}

}  // namespace trireme::vision
