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

template <typename T>
Moments moments(const BatchNormShape& shape, const T* x, std::int64_t channel) {
  const RowLoops<T>& loops = row_loops<T>();
  const float shift = to_f32(x[row_of(shape, 0, channel).element]);
  Sums total;
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Sums sums = loops.sums(x + row_of(shape, sample, channel).element, shape.spatial, shift);
    total.first += sums.first;
    total.second += sums.second;
  }
  const double mean = total.first / static_cast<double>(shape.batch * shape.spatial);
  return {static_cast<double>(shift) + mean, total.second - mean * total.first};
}

template <typename T>
void apply(const BatchNormShape& shape, const BatchNormForwardOf<T>& arrays, std::int64_t channel) {
  const RowLoops<T>& loops = row_loops<T>();
  const Forward terms{arrays.statistics.mean[channel],
                      arrays.gamma[channel] * arrays.statistics.inverse_deviation[channel],
                      arrays.beta[channel]};
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Row row = row_of(shape, sample, channel);
    loops.apply(terms, arrays.x + row.element, at(arrays.residual, row.element), shape.spatial,
                arrays.y + row.element, at(arrays.mask, row.word));
  }
}

template <typename T>
GradientSums gradient_sums(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
                           std::int64_t channel) {
  const RowLoops<T>& loops = row_loops<T>();
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

template <typename T>
void gradient(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
              std::int64_t channel, const GradientSums& sums) {
  const RowLoops<T>& loops = row_loops<T>();
  const Backward terms = backward_terms(arrays, channel, sums);
  for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
    const Row row = row_of(shape, sample, channel);
    loops.gradient(terms, arrays.gradient_y + row.element, at(arrays.mask, row.word),
                   arrays.x + row.element, shape.spatial, arrays.gradient_x + row.element,
                   at(arrays.gradient_residual, row.element));
  }
}

template Moments moments(const BatchNormShape&, const float*, std::int64_t);
template void apply(const BatchNormShape&, const BatchNormForwardOf<float>&, std::int64_t);
template GradientSums gradient_sums(const BatchNormShape&, const BatchNormBackwardOf<float>&,
                                    std::int64_t);
template void gradient(const BatchNormShape&, const BatchNormBackwardOf<float>&, std::int64_t,
                       const GradientSums&);
template Moments moments(const BatchNormShape&, const Bf16*, std::int64_t);
template void apply(const BatchNormShape&, const BatchNormForwardOf<Bf16>&, std::int64_t);
template GradientSums gradient_sums(const BatchNormShape&, const BatchNormBackwardOf<Bf16>&,
                                    std::int64_t);
template void gradient(const BatchNormShape&, const BatchNormBackwardOf<Bf16>&, std::int64_t,
                       const GradientSums&);

}  // namespace trireme::kernels::internal::channels_first
