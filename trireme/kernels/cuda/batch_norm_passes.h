#pragma once

// The passes of batch_norm.h.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/cuda/batch_norm_sums.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::kernels::cuda::internal {

// ---- Forward

struct OwnMoments {
  ChannelSums sums;
  CentredPair centred;
  double count;
  Moments* moments;
  double* total_count;

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    if (c == 0) *total_count = count;
    moments[c] = {};
    if (count == 0) return;  // of a group others have some
    const Sums total = sums(c);
    const double mean = total.first / count;
    const auto shift = static_cast<double>(centred.x[c * centred.shift_stride]);
    moments[c] = {shift + mean, total.second - mean * total.first};
  }
};

/// Moments as sums that ranks can add.
struct SplitMoments {
  const Moments* moments;
  std::int64_t channels;
  double count;
  double* values;

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    const Moments own = moments[c];
    values[c] = count * own.mean;
    values[channels + c] = own.squares + count * own.mean * own.mean;
    if (c == 0) values[2 * channels] = count;
  }
};

struct MergeMoments {
  const double* values;
  std::int64_t channels;
  Moments* moments;
  double* total_count;

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    const double count = values[2 * channels];
    const double mean = values[c] / count;
    moments[c] = {mean, values[channels + c] - mean * values[c]};
    if (c == 0) *total_count = count;
  }
};

struct SetStatistics {
  BatchNormOptions options;
  BatchNormForward arrays;
  const Moments* moments;

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    kernels::internal::set_statistics(options, arrays, c, moments[c]);
  }
};

/// A bit of a word. On a GPU the 16 indices of a word are neighbours in a warp, all here: they
/// write it together.
TRIREME_HOST_DEVICE inline void set_bit(std::uint16_t* word, int bit, bool value) {
#if defined(__CUDA_ARCH__)
  const unsigned shift = threadIdx.x & 16U;
  const unsigned bits = __ballot_sync(0xFFFFU << shift, value);
  if (bit == 0) *word = static_cast<std::uint16_t>(bits >> shift);
#else
  const std::uint32_t own = 1U << bit;
  *word = static_cast<std::uint16_t>(value ? *word | own : *word & ~own);
#endif
}

/// Index i is element i % 16 of word i / 16 of the mask.
struct Normalise {
  BatchNormForward arrays;
  NormRows rows;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, column] = divide(i, rows.num_words * 16);
    const NormPlace place = rows.at(row, column);
    const bool is_inside = column < rows.width;
    float t = 0;
    if (is_inside) {
      const std::int64_t c = place.channel, e = place.element;
      const float factor = arrays.gamma[c] * arrays.statistics.inverse_deviation[c];
      t = (arrays.x[e] - arrays.statistics.mean[c]) * factor + arrays.beta[c];
      if (arrays.residual != nullptr) t = t + arrays.residual[e];
    }
    if (arrays.mask != nullptr) {
      const bool passes = !(t <= 0);  // NaN too
      set_bit(arrays.mask + place.word, place.bit, passes);
      t = passes ? t : 0;
    }
    if (is_inside) arrays.y[place.element] = t;
  }
};

inline void check_count(double count) {
  if (count >= 2) return;
  throw Error(ErrorKind::kInvalidArgument,
              "batch norm needs 2 elements or more of each channel; got " +
                  std::to_string(static_cast<std::int64_t>(count)));
}

/// Adds over the ranks; empty: this one alone.
using SumValues = std::function<void(std::span<double> values)>;

template <typename Each>
void batch_norm_forward_passes(const BatchNormOptions& options, const BatchNormShape& shape,
                               const BatchNormForward& arrays, std::span<std::byte> workspace,
                               const SumValues& sum, const Each& each) {
  if (options.has_relu != (arrays.mask != nullptr) && mask_words(shape) > 0) {
    throw Error(ErrorKind::kInvalidArgument, "batch norm keeps a mask with ReLU, and only then");
  }
  const std::int64_t n = shape.channels;
  const auto count = static_cast<double>(shape.batch * shape.spatial);
  if (!sum) check_count(count);
  const NormWorkspace space = norm_workspace(workspace, shape);
  double* total_count = arrays.statistics.count;
  const CentredPair centred{arrays.x, shape.has_channels_last ? 1 : shape.spatial};
  const ChannelSums sums = sum_channels(centred, space, each);
  each(n, OwnMoments{sums, centred, count, space.moments, total_count});
  if (sum) {
    each(n, SplitMoments{space.moments, n, count, space.values});
    sum({space.values, static_cast<std::size_t>(2 * n + 1)});
    each(n, MergeMoments{space.values, n, space.moments, total_count});
  }
  each(n, SetStatistics{options, arrays, space.moments});
  each(space.rows.num_padded(), Normalise{arrays, space.rows});
}

// ---- Backward

struct ParameterGradients {
  ChannelSums sums;
  BatchNormBackward arrays;
  double* values;  ///< [channels, 2]

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    const Sums total = sums(c);
    kernels::internal::set_parameter_gradients(arrays, c, total);
    values[2 * c] = total.first;
    values[2 * c + 1] = total.second;
  }
};

struct BackwardTerms {
  BatchNormBackward arrays;
  const double* values;
  Backward* terms;

  TRIREME_HOST_DEVICE void operator()(std::int64_t c) const {
    terms[c] = kernels::internal::backward_terms(arrays, c, {values[2 * c], values[2 * c + 1]});
  }
};

struct InputGradient {
  BatchNormBackward arrays;
  NormRows rows;
  const Backward* terms;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, column] = divide(i, rows.width);
    const NormPlace place = rows.at(row, column);
    const Backward term = terms[place.channel];
    const float g = masked(arrays, place);
    const float d = arrays.x[i] - term.mean;
    arrays.gradient_x[i] = term.factor * g + term.slope * d + term.offset;
    if (arrays.gradient_residual != nullptr) arrays.gradient_residual[i] = g;
  }
};

template <typename Each>
void batch_norm_backward_passes(const BatchNormShape& shape, const BatchNormBackward& arrays,
                                std::span<std::byte> workspace, const SumValues& sum,
                                const Each& each) {
  const std::int64_t n = shape.channels;
  const NormWorkspace space = norm_workspace(workspace, shape);
  const ChannelSums sums = sum_channels(GradientPair{arrays}, space, each);
  each(n, ParameterGradients{sums, arrays, space.values});
  if (sum) sum({space.values, static_cast<std::size_t>(2 * n)});
  each(n, BackwardTerms{arrays, space.values, space.backward});
  each(shape.count(), InputGradient{arrays, space.rows, space.backward});
}

}  // namespace trireme::kernels::cuda::internal
