#include "trireme/kernels/normalization/batch_norm.h"

#include <exception>
#include <string>
#include <vector>

#include "trireme/error.h"
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

void check_count(double count) {
  if (count >= 2) return;
  throw Error(ErrorKind::kInvalidArgument,
              "batch norm needs 2 elements or more of each channel, of all ranks together; got " +
                  std::to_string(static_cast<std::int64_t>(count)));
}

template <typename T>
void check_mask(const BatchNormOptions& options, const BatchNormShape& shape,
                const BatchNormForwardOf<T>& arrays) {
  if (options.has_relu == (arrays.mask != nullptr) || mask_words(shape) == 0) return;
  throw Error(ErrorKind::kInvalidArgument, "batch norm keeps a mask with ReLU, and only then");
}

/// Zeros where there are no elements.
template <typename T>
std::vector<Moments> all_moments(const BatchNormShape& shape, const T* x, const Spread& spread) {
  if (own_count(shape) == 0) return std::vector<Moments>(shape.channels);
  if (shape.has_channels_last) return last::moments(shape, x, spread);
  std::vector<Moments> all(shape.channels);
  spread(shape.channels, [&](std::int64_t c) { all[c] = first::moments(shape, x, c); });
  return all;
}

/// Of all ranks, from those of each; and the count of elements. A rank with an error takes part too,
/// so that no other waits for it, and all throw.
template <typename T>
std::vector<Moments> moments_of_group(const BatchNormOptions& options, const BatchNormShape& shape,
                                      const BatchNormForwardOf<T>& arrays, StatisticsGroup& group,
                                      const Spread& spread) {
  const auto n = static_cast<std::size_t>(shape.channels);
  std::vector<Moments> moments(n);
  std::vector<double> sums(2 * n + 2);
  std::exception_ptr error;
  try {
    check_mask(options, shape, arrays);
    moments = all_moments(shape, arrays.x, spread);
    const double own = own_count(shape);
    for (std::size_t c = 0; c < n; ++c) {
      sums[c] = own * moments[c].mean;
      sums[n + c] = moments[c].squares + own * moments[c].mean * moments[c].mean;
    }
    sums[2 * n] = own;
  } catch (...) {
    error = std::current_exception();
    sums[2 * n + 1] = 1;
  }
  group.sum(sums);
  if (error) std::rethrow_exception(error);
  if (const double num_bad = sums[2 * n + 1]; num_bad > 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "batch norm: " + std::to_string(static_cast<std::int64_t>(num_bad)) +
                    " other ranks of the group failed; they say why");
  }
  const double count = *arrays.statistics.count = sums[2 * n];
  check_count(count);
  for (std::size_t c = 0; c < n; ++c) {
    const double mean = sums[c] / count;
    moments[c] = {mean, sums[n + c] - mean * sums[c]};
  }
  return moments;
}

template <typename T>
std::vector<GradientSums> all_gradient_sums(const BatchNormShape& shape,
                                            const BatchNormBackwardOf<T>& arrays,
                                            const Spread& spread) {
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

template <typename T>
void forward(const BatchNormOptions& options, const BatchNormShape& shape,
             const BatchNormForwardOf<T>& arrays, StatisticsGroup* group, const Spread& spread) {
  if (group == nullptr) {
    check_mask(options, shape, arrays);
    check_count(own_count(shape));
    *arrays.statistics.count = own_count(shape);
  }
  if (group == nullptr && !shape.has_channels_last) {
    spread(shape.channels, [&](std::int64_t c) {
      set_statistics(options, arrays, c, first::moments(shape, arrays.x, c));
      first::apply(shape, arrays, c);
    });
    return;
  }
  const std::vector<Moments> moments =
      group == nullptr ? all_moments(shape, arrays.x, spread)
                       : moments_of_group(options, shape, arrays, *group, spread);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    set_statistics(options, arrays, c, moments[c]);
  }
  if (shape.has_channels_last) return last::apply(shape, arrays, spread);
  spread(shape.channels, [&](std::int64_t c) { first::apply(shape, arrays, c); });
}

template <typename T>
void backward(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
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

}  // namespace

std::int64_t mask_words(const BatchNormShape& shape) {
  return shape.has_channels_last
             ? shape.batch * shape.spatial * internal::words_of_row(shape.channels)
             : shape.batch * shape.channels * internal::words_of_row(shape.spatial);
}

void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForward& arrays, StatisticsGroup* group,
                        const Spread& spread) {
  forward(options, shape, arrays, group, spread);
}

void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForwardOf<Bf16>& arrays, StatisticsGroup* group,
                        const Spread& spread) {
  forward(options, shape, arrays, group, spread);
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arrays,
                         StatisticsGroup* group, const Spread& spread) {
  backward(shape, arrays, group, spread);
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackwardOf<Bf16>& arrays,
                         StatisticsGroup* group, const Spread& spread) {
  backward(shape, arrays, group, spread);
}

}  // namespace trireme::kernels
