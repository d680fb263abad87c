#include "packs/vision/kernels/nms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision {
namespace {

/// So many of the highest scores are decided among themselves, then suppress all others, of which
/// the suppressed are dropped: often enough that few are looked at in vain, seldom enough to cost
/// nothing.
constexpr std::int64_t kWindow = 64;

/// Boxes that all kept ones of a window are held against while they are in the first cache.
constexpr std::int64_t kBlock = 1024;

/// Overlaps that threads are made for: some 200 us.
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 20;

/// Boxes side by side, in the order in which they are looked at.
struct Columns {
  explicit Columns(std::size_t n) : x1(n), y1(n), x2(n), y2(n), area(n), is_out(n), box(n) {}

  std::vector<float> x1, y1, x2, y2, area;
  std::vector<std::int32_t> is_out;  ///< Suppressed: 1.
  std::vector<std::int64_t> box;     ///< Which one it is.
};

/// Places [begin, end) of columns.
struct Stretch {
  std::int64_t begin, end;
};

/// Suppresses what overlaps with the box at `kept`, of a stretch behind it.
TRIREME_INLINE_LOOP void suppress_loop(float threshold, std::int64_t kept, Stretch stretch,
                                       Columns& columns) {
  const float* __restrict x1 = columns.x1.data();
  const float* __restrict y1 = columns.y1.data();
  const float* __restrict x2 = columns.x2.data();
  const float* __restrict y2 = columns.y2.data();
  const float* __restrict area = columns.area.data();
  std::int32_t* __restrict is_out = columns.is_out.data();
  const float kept_x1 = x1[kept], kept_y1 = y1[kept], kept_x2 = x2[kept], kept_y2 = y2[kept];
  const float kept_area = area[kept];
  for (std::int64_t i = stretch.begin; i < stretch.end; ++i) {
    const float left = x1[i] > kept_x1 ? x1[i] : kept_x1;
    const float top = y1[i] > kept_y1 ? y1[i] : kept_y1;
    const float right = x2[i] < kept_x2 ? x2[i] : kept_x2;
    const float bottom = y2[i] < kept_y2 ? y2[i] : kept_y2;
    const float width = right - left > 0 ? right - left : 0;
    const float height = bottom - top > 0 ? bottom - top : 0;
    const float inter = width * height;
    const std::int32_t overlaps = inter / (kept_area + area[i] - inter) > threshold ? 1 : 0;
    is_out[i] |= overlaps;
  }
}

TRIREME_AVX2 void suppress_avx2(float threshold, std::int64_t kept, Stretch stretch,
                                Columns& columns) {
  suppress_loop(threshold, kept, stretch, columns);
}

TRIREME_AVX512 void suppress_avx512(float threshold, std::int64_t kept, Stretch stretch,
                                    Columns& columns) {
  suppress_loop(threshold, kept, stretch, columns);
}

/// Moves those of [begin, end) that are still in to the front; how many they are.
std::int64_t drop_suppressed(std::int64_t begin, std::int64_t end, Columns& columns) {
  std::int64_t count = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    columns.x1[count] = columns.x1[i];
    columns.y1[count] = columns.y1[i];
    columns.x2[count] = columns.x2[i];
    columns.y2[count] = columns.y2[i];
    columns.area[count] = columns.area[i];
    columns.box[count] = columns.box[i];
    count += columns.is_out[i] == 0 ? 1 : 0;  // no branch: nobody could predict it
  }
  std::fill_n(columns.is_out.begin(), count, 0);
  return count;
}

/// The largest f32 that is not above x: `overlap > x` in f64 is `overlap > this` in f32.
float round_down(double x) {
  const auto nearest = static_cast<float>(x);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return static_cast<double>(nearest) > x ? std::nextafter(nearest, -kInfinity) : nearest;
}

/// The boxes of `order`, which is in order of falling scores.
Columns columns_of(std::span<const float> boxes, std::span<const std::int64_t> order) {
  Columns columns(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const float* box = boxes.data() + order[i] * 4;
    columns.x1[i] = box[0];
    columns.y1[i] = box[1];
    columns.x2[i] = box[2];
    columns.y2[i] = box[3];
    columns.area[i] = (box[2] - box[0]) * (box[3] - box[1]);
    columns.box[i] = order[i];
  }
  return columns;
}

/// The kept ones of `order`.
std::vector<std::int64_t> keep_greedily(std::span<const float> boxes,
                                        std::span<const std::int64_t> order,
                                        const NmsSettings& options, const kernels::Spread& spread) {
  Columns columns = columns_of(boxes, order);
  const auto suppress = kernels::has_avx512() ? suppress_avx512
                        : kernels::has_avx2() ? suppress_avx2
                                              : suppress_loop;
  const float limit = round_down(options.threshold);
  std::vector<std::int64_t> kept, kept_places;
  for (std::int64_t end = std::ssize(order); end > 0;) {
    const std::int64_t window = std::min(kWindow, end);
    kept_places.clear();
    for (std::int64_t i = 0; i < window; ++i) {
      if (columns.is_out[i] != 0) continue;
      if (std::ssize(kept) == options.max_kept) return kept;
      kept.push_back(columns.box[i]);
      kept_places.push_back(i);
      suppress(limit, i, {i + 1, window}, columns);
    }
    const kernels::Spread& used =
        kernels::spread_or_caller(spread, std::ssize(kept_places) * (end - window), kWorthThreads);
    used((end - window + kBlock - 1) / kBlock, [&](std::int64_t block) {
      const std::int64_t begin = window + block * kBlock;
      for (const std::int64_t place : kept_places) {
        suppress(limit, place, {begin, std::min(begin + kBlock, end)}, columns);
      }
    });
    end = drop_suppressed(window, end, columns);
  }
  return kept;
}

void check(std::span<const float> boxes, std::span<const float> scores, double threshold) {
  internal::check_nms_threshold(threshold);
  if (boxes.size() != scores.size() * 4) {
    throw Error(ErrorKind::kInvalidArgument, "expected 4 coordinates for each of " +
                                                 std::to_string(scores.size()) + " scores, got " +
                                                 std::to_string(boxes.size()));
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float* box = boxes.data() + i * 4;
    // Written so that a NaN fails.
    if (box[0] <= box[2] && box[1] <= box[3] && scores[i] == scores[i]) continue;
    throw Error(ErrorKind::kInvalidArgument,
                "box " + std::to_string(i) + " must be x1 <= x2, y1 <= y2 with a score, got " +
                    std::to_string(box[0]) + " " + std::to_string(box[1]) + " " +
                    std::to_string(box[2]) + " " + std::to_string(box[3]) + ", score " +
                    std::to_string(scores[i]));
  }
}

void sort_by_score(std::span<const float> scores, std::span<std::int64_t> order) {
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
}

}  // namespace

void internal::check_nms_threshold(double threshold) {
  if (!std::isnan(threshold)) return;
  throw Error(ErrorKind::kInvalidArgument, "the threshold of overlaps is NaN");
}

std::vector<std::int64_t> nms(std::span<const float> boxes, std::span<const float> scores,
                              const NmsSettings& options, const kernels::Spread& spread) {
  check(boxes, scores, options.threshold);
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  sort_by_score(scores, order);
  return keep_greedily(boxes, order, options, spread);
}

std::vector<std::int64_t> batched_nms(std::span<const float> boxes, std::span<const float> scores,
                                      std::span<const std::int64_t> classes,
                                      const NmsSettings& options, const kernels::Spread& spread) {
  check(boxes, scores, options.threshold);
  if (classes.size() != scores.size()) {
    throw Error(ErrorKind::kInvalidArgument, "expected a class for each of " +
                                                 std::to_string(scores.size()) + " boxes, got " +
                                                 std::to_string(classes.size()));
  }
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t box) { return classes[box]; });
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || classes[order[i]] != classes[order[i - 1]]) begins.push_back(i);
  }
  begins.push_back(order.size());
  std::vector<std::vector<std::int64_t>> kept_of(begins.size() - 1);
  const kernels::Spread& used = kernels::spread_or_caller(spread, std::ssize(order), 4096);
  const kernels::Spread& within =
      kept_of.size() == 1 ? spread : kernels::spread_or_caller(spread, 0, 1);
  used(std::ssize(kept_of), [&](std::int64_t i) {
    const std::span own = std::span(order).subspan(begins[i], begins[i + 1] - begins[i]);
    sort_by_score(scores, own);
    kept_of[i] = keep_greedily(boxes, own, options, within);
  });
  std::vector<std::int64_t> kept;
  for (const auto& some : kept_of) kept.insert(kept.end(), some.begin(), some.end());
  sort_by_score(scores, kept);
  if (options.max_kept >= 0 && std::ssize(kept) > options.max_kept) kept.resize(options.max_kept);
  return kept;
}

std::int64_t fixed_nms(std::span<const float> boxes, std::span<const float> scores,
                       std::span<const std::int64_t> classes, double threshold,
                       std::span<std::int64_t> kept, const kernels::Spread& spread) {
  const std::vector<std::int64_t> all = batched_nms(
      boxes, scores, classes, {.threshold = threshold, .max_kept = std::ssize(kept)}, spread);
  std::fill(std::ranges::copy(all, kept.begin()).out, kept.end(), 0);
  return std::ssize(all);
}

}  // namespace trireme::vision
