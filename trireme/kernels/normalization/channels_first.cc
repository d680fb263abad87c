#include "trireme/kernels/normalization/layouts.h"

namespace trireme::kernels::internal::channels_first {
namespace {

/// Where a channel of a sample begins.
struct Row {
  std::int64_t element;
  std::int64_t word;  ///< Of the mask.
};

Row row_of(const BatchNormShape& shape, std::int64_t sample, std::int64_t channel) {
  const std::int64_t row = sample * shape.channels + channel;
  return {row * shape.spatial, row * words_of_row(shape.spatial)};
}

}  // namespace

Moments moments(const BatchNormShape& shape, const float* x, std::int64_t channel) {
  const RowLoops& loops = row_loops();
  const float shift = x[row_of(shape, 0, channel).element];
  Sums total;
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Sums sums = loops.sums(x + row_of(shape, sample, channel).element, shape.spatial, shift);
    total.first += sums.first;
    total.second += sums.second;
  }
  const double mean = total.first / static_cast<double>(shape.batch * shape.spatial);
  return {static_cast<double>(shift) + mean, total.second - mean * total.first};
}

void apply(const BatchNormShape& shape, const BatchNormForward& arrays, std::int64_t channel) {
  const RowLoops& loops = row_loops();
  const Forward terms{arrays.statistics.mean[channel],
                      arrays.gamma[channel] * arrays.statistics.inverse_deviation[channel],
                      arrays.beta[channel]};
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Row row = row_of(shape, sample, channel);
    loops.apply(terms, arrays.x + row.element, at(arrays.residual, row.element), shape.spatial,
                arrays.y + row.element, at(arrays.mask, row.word));
  }
}

GradientSums gradient_sums(const BatchNormShape& shape, const BatchNormBackward& arrays,
                           std::int64_t channel) {
  const RowLoops& loops = row_loops();
  GradientSums total;
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Row row = row_of(shape, sample, channel);
    const Sums sums =
        loops.gradient_sums(arrays.gradient_y + row.element, at(arrays.mask, row.word),
                            arrays.x + row.element, shape.spatial, arrays.statistics.mean[channel]);
    total.first += sums.first;
    total.second += sums.second;
  }
  return total;
}

void gradient(const BatchNormShape& shape, const BatchNormBackward& arrays, std::int64_t channel,
              const GradientSums& sums) {
  const RowLoops& loops = row_loops();
  const Backward terms = backward_terms(arrays, channel, sums);
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Row row = row_of(shape, sample, channel);
    loops.gradient(terms, arrays.gradient_y + row.element, at(arrays.mask, row.word),
                   arrays.x + row.element, shape.spatial, arrays.gradient_x + row.element,
                   at(arrays.gradient_residual, row.element));
  }
}

}  // namespace trireme::kernels::internal::channels_first
