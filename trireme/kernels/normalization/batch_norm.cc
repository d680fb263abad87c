#include "trireme/kernels/normalization/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/kernels/normalization/layouts.h"

namespace trireme::kernels {
namespace internal {

Backward backward_terms(const BatchNormBackward& arrays, std::int64_t channel,
                        const GradientSums& sums) {
  const double inverse = static_cast<double>(arrays.statistics.inverse_deviation[channel]);
  const double factor = static_cast<double>(arrays.gamma[channel]) * inverse;
  const double count = *arrays.statistics.count;
  return {arrays.statistics.mean[channel], static_cast<float>(factor),
          static_cast<float>(-factor * inverse * inverse * sums.second / count),
          static_cast<float>(-factor * sums.first / count)};
}

}  // namespace internal

namespace {

using internal::GradientSums;
using internal::Moments;
namespace first = internal::channels_first;
namespace last = internal::channels_last;

double own_count(const BatchNormShape& shape) {
  return static_cast<double>(shape.batch * shape.spatial);
}

void check_count(double count, double least) {
  if (count >= least) return;
  throw Error(ErrorKind::kInvalidArgument,
              "batch norm needs 2 elements or more of each channel, and one on each rank; got " +
                  std::to_string(static_cast<std::int64_t>(count)));
}

void set_statistics(const BatchNormOptions& options, const BatchNormForward& arrays,
                    std::int64_t channel, const Moments& moments) {
  const BatchNormStatistics& statistics = arrays.statistics;
  const double variance = std::max(0.0, moments.squares / *statistics.count);
  if (arrays.variance != nullptr) arrays.variance[channel] = static_cast<float>(variance);
  statistics.mean[channel] = static_cast<float>(moments.mean);
  statistics.inverse_deviation[channel] =
      static_cast<float>(1 / std::sqrt(variance + static_cast<double>(options.epsilon)));
}

std::vector<Moments> all_moments(const BatchNormShape& shape, const float* x,
                                 const Spread& spread) {
  if (shape.has_channels_last) return last::moments(shape, x, spread);
  std::vector<Moments> all(shape.channels);
  spread(shape.channels, [&](std::int64_t c) { all[c] = first::moments(shape, x, c); });
  return all;
}

/// Of all ranks, from those of each; the count with them.
double merge_moments(const BatchNormShape& shape, StatisticsGroup& group,
                     std::vector<Moments>& moments) {
  const double own = own_count(shape);
  const std::size_t n = moments.size();
  std::vector<double> sums(2 * n + 1);
  for (std::size_t c = 0; c < n; ++c) {
    sums[c] = own * moments[c].mean;
    sums[n + c] = moments[c].squares + own * moments[c].mean * moments[c].mean;
  }
  sums.back() = own;
  group.sum(sums);
  for (std::size_t c = 0; c < n; ++c) {
    const double mean = sums[c] / sums.back();
    moments[c] = {mean, sums[n + c] - mean * sums[c]};
  }
  return sums.back();
}

void set_parameter_gradients(const BatchNormBackward& arrays, std::int64_t channel,
                             const GradientSums& sums) {
  arrays.gradient_beta[channel] = static_cast<float>(sums.first);
  arrays.gradient_gamma[channel] = static_cast<float>(
      sums.second * static_cast<double>(arrays.statistics.inverse_deviation[channel]));
}

std::vector<GradientSums> all_gradient_sums(const BatchNormShape& shape,
                                            const BatchNormBackward& arrays, const Spread& spread) {
  if (shape.has_channels_last) return last::gradient_sums(shape, arrays, spread);
  std::vector<GradientSums> all(shape.channels);
  spread(shape.channels, [&](std::int64_t c) { all[c] = first::gradient_sums(shape, arrays, c); });
  return all;
}

void merge_gradient_sums(StatisticsGroup& group, std::vector<GradientSums>& sums) {
  std::vector<double> values;
  for (const GradientSums& one : sums) values.insert(values.end(), {one.first, one.second});
  group.sum(values);
  for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = {values[2 * c], values[2 * c + 1]};
}

}  // namespace

std::int64_t mask_words(const BatchNormShape& shape) {
  return shape.has_channels_last
             ? shape.batch * shape.spatial * internal::words_of_row(shape.channels)
             : shape.batch * shape.channels * internal::words_of_row(shape.spatial);
}

void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForward& arrays, StatisticsGroup* group,
                        const Spread& spread) {
  if (options.has_relu != (arrays.mask != nullptr)) {
    throw Error(ErrorKind::kInvalidArgument, "batch norm keeps a mask with ReLU, and only then");
  }
  check_count(own_count(shape), group == nullptr ? 2 : 1);
  *arrays.statistics.count = own_count(shape);
  if (group == nullptr && !shape.has_channels_last) {
    spread(shape.channels, [&](std::int64_t c) {
      set_statistics(options, arrays, c, first::moments(shape, arrays.x, c));
      first::apply(shape, arrays, c);
    });
    return;
  }
  std::vector<Moments> moments = all_moments(shape, arrays.x, spread);
  if (group != nullptr) *arrays.statistics.count = merge_moments(shape, *group, moments);
  check_count(*arrays.statistics.count, 2);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    set_statistics(options, arrays, c, moments[c]);
  }
  if (shape.has_channels_last) return last::apply(shape, arrays, spread);
  spread(shape.channels, [&](std::int64_t c) { first::apply(shape, arrays, c); });
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arrays,
                         StatisticsGroup* group, const Spread& spread) {
  if (group == nullptr && !shape.has_channels_last) {
    spread(shape.channels, [&](std::int64_t c) {
      const GradientSums sums = first::gradient_sums(shape, arrays, c);
      set_parameter_gradients(arrays, c, sums);
      first::gradient(shape, arrays, c, sums);
    });
    return;
  }
  std::vector<GradientSums> sums = all_gradient_sums(shape, arrays, spread);
  for (std::int64_t c = 0; c < shape.channels; ++c) set_parameter_gradients(arrays, c, sums[c]);
  if (group != nullptr) merge_gradient_sums(*group, sums);
  if (shape.has_channels_last) return last::gradient(shape, arrays, sums, spread);
  spread(shape.channels, [&](std::int64_t c) { first::gradient(shape, arrays, c, sums[c]); });
}

}  // namespace trireme::kernels
