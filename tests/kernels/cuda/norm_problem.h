#pragma once

// A batch norm on the host, for tests: what it reads and what it makes.

#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/normalization/batch_norm.h"

namespace trireme::kernels::cuda {

using Floats = std::vector<float>;

inline constexpr BatchNormShape kNormShapes[] = {
    {2, 3, 35, false},   {2, 35, 3, true},   {1, 1, 2, false},    {4, 16, 16, false},
    {3, 5, 2049, false}, {2, 17, 700, true}, {1, 64, 1025, true}, {2, 1, 1, true}};

struct NormInput {
  NormInput(const BatchNormShape& shape, bool has_residual)
      : x(random_numbers<float>(shape.count(), 1, 0)),
        gamma(random_numbers<float>(shape.channels, 3, 0)),
        beta(random_numbers<float>(shape.channels, 4, 0)),
        gradient_y(random_numbers<float>(shape.count(), 5, 0)) {
    for (float& value : x) value = value * 3 + 10;
    if (has_residual) residual = random_numbers<float>(shape.count(), 2, 0);
  }

  Floats x, residual, gamma, beta, gradient_y;
};

struct NormOutput {
  explicit NormOutput(const BatchNormShape& shape)
      : y(shape.count()),
        variance(shape.channels),
        mean(shape.channels),
        inverse(shape.channels),
        gradient_x(shape.count()),
        gradient_residual(shape.count()),
        gradient_gamma(shape.channels),
        gradient_beta(shape.channels),
        mask(mask_words(shape)),
        count(1) {}
  bool operator==(const NormOutput&) const = default;

  /// Bits behind the end of a row are of no meaning.
  void clear_padding(const BatchNormShape& shape) {
    const std::int64_t width = shape.has_channels_last ? shape.channels : shape.spatial;
    const std::int64_t num_words = (width + 15) / 16;
    if (width % 16 == 0) return;
    for (std::size_t i = num_words - 1; i < mask.size(); i += num_words) {
      mask[i] = static_cast<std::uint16_t>(mask[i] & ((1U << width % 16) - 1));
    }
  }

  Floats y, variance, mean, inverse, gradient_x, gradient_residual, gradient_gamma, gradient_beta;
  std::vector<std::uint16_t> mask;
  std::vector<double> count;
};

inline BatchNormForward forward_arrays(const NormInput& input, bool has_relu, NormOutput& output) {
  return {.x = input.x.data(),
          .residual = input.residual.empty() ? nullptr : input.residual.data(),
          .gamma = input.gamma.data(),
          .beta = input.beta.data(),
          .y = output.y.data(),
          .mask = has_relu ? output.mask.data() : nullptr,
          .variance = output.variance.data(),
          .statistics = {output.mean.data(), output.inverse.data(), output.count.data()}};
}

inline BatchNormBackward backward_arrays(const NormInput& input, bool has_relu,
                                         NormOutput& output) {
  return {.gradient_y = input.gradient_y.data(),
          .x = input.x.data(),
          .gamma = input.gamma.data(),
          .mask = has_relu ? output.mask.data() : nullptr,
          .statistics = {output.mean.data(), output.inverse.data(), output.count.data()},
          .gradient_x = output.gradient_x.data(),
          .gradient_residual = input.residual.empty() ? nullptr : output.gradient_residual.data(),
          .gradient_gamma = output.gradient_gamma.data(),
          .gradient_beta = output.gradient_beta.data()};
}

/// By the kernels for processors.
inline NormOutput norm_on_host(const NormInput& input, const BatchNormShape& shape, bool has_relu,
                               StatisticsGroup* group = nullptr) {
  NormOutput output(shape);
  batch_norm_forward({.has_relu = has_relu}, shape, forward_arrays(input, has_relu, output), group);
  batch_norm_backward(shape, backward_arrays(input, has_relu, output), group);
  output.clear_padding(shape);
  return output;
}

}  // namespace trireme::kernels::cuda
