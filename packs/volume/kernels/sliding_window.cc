#include "packs/volume/kernels/sliding_window.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::volume {
namespace {

constexpr std::int64_t kBlock = 1024;  ///< Voxels whose best scores stay in the first cache.

void check_option(const char* name, double value, bool is_good, const char* expected) {
  if (is_good) return;
  throw Error(ErrorKind::kInvalidArgument, "sliding window: " + std::string(name) + " is " +
                                               std::to_string(value) + ", expected " + expected);
}

void check(const SlidingWindowOptions& options) {
  check_shape("sliding window: the patch", options.patch);
  const auto& [patch, overlap, sigma, smallest] = options;
  check_option("overlap", overlap, overlap >= 0 && overlap < 1, "0 or more and below 1");
  check_option("sigma", sigma, sigma > 0 && std::isfinite(sigma), "a number above 0");
  check_option("smallest_weight", smallest, smallest >= 0 && smallest <= 1, "within [0, 1]");
}

[[noreturn]] void refuse(const VolumeShape& volume, std::int64_t index, const std::string& why) {
  throw Error(ErrorKind::kInvalidArgument,
              "sliding window: voxel " + to_text(volume.voxel_at(index)) + why);
}

std::vector<std::int64_t> positions_along(std::int64_t volume, std::int64_t patch, double overlap) {
  const auto room = static_cast<double>(volume - patch);
  const double wanted = static_cast<double>(patch) * (1 - overlap);
  const auto num_steps = static_cast<std::int64_t>(std::min(room, std::ceil(room / wanted)));
  std::vector<std::int64_t> positions = {0};
  for (std::int64_t i = 1; i <= num_steps; ++i) {
    const double even = room / static_cast<double>(num_steps) * static_cast<double>(i);
    positions.push_back(std::llrint(even));
  }
  return positions;
}

// ---- loops, each for any processor, AVX2 and AVX-512

#define TRIREME_EACH_ISA(result, name, parameters, arguments)                      \
  result name##_portable parameters { return name##_loop arguments; }              \
  TRIREME_AVX2 result name##_avx2 parameters { return name##_loop arguments; }     \
  TRIREME_AVX512 result name##_avx512 parameters { return name##_loop arguments; } \
  result name parameters {                                                         \
    if (kernels::has_avx512()) return name##_avx512 arguments;                     \
    if (kernels::has_avx2()) return name##_avx2 arguments;                         \
    return name##_portable arguments;                                              \
  }

/// A row of weights.
struct RowWeights {
  float factor;
  float smallest;
  const float* along;

  TRIREME_INLINE_LOOP float operator[](std::int64_t x) const {
    const float weight = factor * along[x];
    return weight > smallest ? weight : smallest;
  }
};

TRIREME_INLINE_LOOP void add_row_loop(const RowWeights& weights, const float* __restrict logits,
                                      std::int64_t n, float* __restrict sum) {
  for (std::int64_t x = 0; x < n; ++x) sum[x] += weights[x] * logits[x];
}

TRIREME_INLINE_LOOP void add_weights_loop(const RowWeights& weights, std::int64_t n,
                                          float* __restrict norm) {
  for (std::int64_t x = 0; x < n; ++x) norm[x] += weights[x];
}

/// Whether all norms are above 0.
TRIREME_INLINE_LOOP bool divide_loop(const float* __restrict norm, std::int64_t n,
                                     float* __restrict sum) {
  int is_good = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    is_good &= norm[i] > 0;
    sum[i] /= norm[i];
  }
  return is_good != 0;
}

/// Whether no score is NaN.
TRIREME_INLINE_LOOP bool keep_larger_loop(const float* __restrict scores, std::int32_t number,
                                          std::int64_t n, float* __restrict best,
                                          std::int32_t* __restrict label) {
  int is_good = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    const float score = scores[i];
    is_good &= score == score;
    label[i] = score > best[i] ? number : label[i];
    best[i] = score > best[i] ? score : best[i];
  }
  return is_good != 0;
}

TRIREME_EACH_ISA(void, add_row,
                 (const RowWeights& weights, const float* logits, std::int64_t n, float* sum),
                 (weights, logits, n, sum))
TRIREME_EACH_ISA(void, add_weights, (const RowWeights& weights, std::int64_t n, float* norm),
                 (weights, n, norm))
TRIREME_EACH_ISA(bool, divide, (const float* norm, std::int64_t n, float* sum), (norm, n, sum))
TRIREME_EACH_ISA(bool, keep_larger,
                 (const float* scores, std::int32_t number, std::int64_t n, float* best,
                  std::int32_t* label),
                 (scores, number, n, best, label))

#undef TRIREME_EACH_ISA

}  // namespace

void internal::check_classes(const VolumeShape& volume, std::int64_t num_classes,
                             std::int64_t most) {
  check_shape("sliding window: the volume", volume);
  if (num_classes >= 1 && num_classes <= most) return;
  throw Error(ErrorKind::kInvalidArgument, "sliding window: " + std::to_string(num_classes) +
                                               " classes, expected 1 to " + std::to_string(most));
}

void internal::check_window(const VolumeShape& patch, const VolumeShape& volume,
                            const Voxel& begin) {
  check_shape("sliding window: the patch", patch);
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t last = volume.sides()[axis] - patch.sides()[axis];
    if (begin[axis] >= 0 && begin[axis] <= last) continue;
    throw Error(ErrorKind::kInvalidArgument, "sliding window: a patch " + to_text(patch) + " at " +
                                                 to_text(begin) + " is not within the volume " +
                                                 to_text(volume));
  }
}

std::vector<Voxel> window_positions(const SlidingWindowOptions& options,
                                    const VolumeShape& volume) {
  check(options);
  check_shape("sliding window: the volume", volume);
  const Voxel sides = volume.sides(), patch = options.patch.sides();
  std::array<std::vector<std::int64_t>, 3> along;
  for (int axis = 0; axis < 3; ++axis) {
    if (patch[axis] > sides[axis]) {
      throw Error(ErrorKind::kInvalidArgument,
                  "sliding window: the patch " + to_text(options.patch) +
                      " does not fit into the volume " + to_text(volume) + "; pad the volume");
    }
    along[axis] = positions_along(sides[axis], patch[axis], options.overlap);
  }
  std::vector<Voxel> positions;
  for (const std::int64_t z : along[0]) {
    for (const std::int64_t y : along[1]) {
      for (const std::int64_t x : along[2]) positions.push_back({z, y, x});
    }
  }
  return positions;
}

WindowWeights::WindowWeights(const SlidingWindowOptions& options)
    : patch_(options.patch), smallest_(static_cast<float>(options.smallest_weight)) {
  check(options);
  for (int axis = 0; axis < 3; ++axis) {
    const auto side = static_cast<double>(patch_.sides()[axis]);
    for (std::int64_t i = 0; i < patch_.sides()[axis]; ++i) {
      const double far = (static_cast<double>(i) - (side - 1) / 2) / (options.sigma * side);
      factors_[axis].push_back(static_cast<float>(std::exp(-far * far / 2)));
    }
  }
}

std::vector<float> WindowWeights::factors() const {
  std::vector<float> factors;
  for (const std::vector<float>& along : factors_) {
    factors.insert(factors.end(), along.begin(), along.end());
  }
  return factors;
}

float WindowWeights::at(std::int64_t z, std::int64_t y, std::int64_t x) const {
  return std::max(smallest_, factors_[0][z] * factors_[1][y] * factors_[2][x]);
}

void WindowWeights::accumulate(const VolumeShape& volume, const Voxel& begin,
                               std::int64_t num_classes, const float* logits, float* sum,
                               float* norm, const kernels::Spread& spread) const {
  internal::check_classes(volume, num_classes, internal::kMostSums);
  internal::check_window(patch_, volume, begin);
  const auto [depth, height, width] = patch_.sides();
  // A piece is a slice of one class; after the classes comes the norm.
  spread((num_classes + 1) * depth, [&](std::int64_t piece) {
    const std::int64_t c = piece / depth, z = piece % depth;
    float* row = c < num_classes ? sum + c * volume.count() : norm;
    row += ((begin[0] + z) * volume.height + begin[1]) * volume.width + begin[2];
    for (std::int64_t y = 0; y < height; ++y, row += volume.width) {
      const RowWeights weights{factors_[0][z] * factors_[1][y], smallest_, factors_[2].data()};
      if (c < num_classes) {
        add_row(weights, logits + (piece * height + y) * width, width, row);
      } else {
        add_weights(weights, width, row);
      }
    }
  });
}

void average_windows(const VolumeShape& volume, std::int64_t num_classes, const float* norm,
                     float* sum, const kernels::Spread& spread) {
  internal::check_classes(volume, num_classes, internal::kMostSums);
  const std::int64_t slice = volume.height * volume.width;
  spread(volume.depth, [&](std::int64_t z) {
    for (std::int64_t c = 0; c < num_classes; ++c) {
      if (divide(norm + z * slice, slice, sum + c * volume.count() + z * slice)) continue;
      const float* hole = std::find_if_not(norm + z * slice, norm + (z + 1) * slice,
                                           [](float weight) { return weight > 0; });
      refuse(volume, hole - norm, " is in no window");
    }
  });
}

void argmax_classes(const VolumeShape& volume, std::int64_t num_classes, const float* scores,
                    std::uint8_t* labels, const kernels::Spread& spread) {
  internal::check_classes(volume, num_classes, internal::kMostLabels);
  const std::int64_t count = volume.count();
  spread((count + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, n = std::min(kBlock, count - begin);
    std::array<float, kBlock> best;
    std::array<std::int32_t, kBlock> label = {};
    std::copy_n(scores + begin, n, best.begin());
    for (std::int64_t c = 0; c < num_classes; ++c) {
      const float* row = scores + c * count + begin;
      if (keep_larger(row, static_cast<std::int32_t>(c), n, best.data(), label.data())) continue;
      const float* bad = std::find_if(row, row + n, [](float score) { return std::isnan(score); });
      refuse(volume, begin + (bad - row), " has score NaN of class " + std::to_string(c));
    }
    std::transform(label.begin(), label.begin() + n, labels + begin,
                   [](std::int32_t number) { return static_cast<std::uint8_t>(number); });
  });
}

}  // namespace trireme::volume
