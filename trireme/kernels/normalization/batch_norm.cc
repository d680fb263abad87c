#include "trireme/kernels/normalization/batch_norm.h"

#include <string>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/kernels/normalization/layouts.h"

namespace trireme::kernels {
namespace {

using internal::GradientSums;
using internal::Moments;
using internal::set_parameter_gradients;
using internal::set_statistics;
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
