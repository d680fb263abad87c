#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "trireme/kernels/normalization/batch_norm.h"

namespace trireme::kernels::reference {

/// Calls `use(element, channel)` for every element.
template <typename Use>
void for_each_element(const BatchNormShape& shape, const Use& use) {
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    use(i, shape.has_channels_last ? i % shape.channels : i / shape.spatial % shape.channels);
  }
}

/// A batch norm with all that comes of it, in any real type, as the definitions say.
template <typename T>
struct BatchNorm {
  std::vector<T> mean, deviation, y;
  std::vector<T> gradient_x, gradient_residual, gradient_gamma, gradient_beta;

  BatchNorm(const BatchNormOptions& options, const BatchNormShape& shape, const std::vector<T>& x,
            const std::vector<T>& residual, const std::vector<T>& gamma, const std::vector<T>& beta,
            const std::vector<T>& gradient_y)
      : mean(shape.channels),
        deviation(shape.channels),
        y(x.size()),
        gradient_x(x.size()),
        gradient_residual(x.size()),
        gradient_gamma(shape.channels),
        gradient_beta(shape.channels) {
    const T m = T(shape.batch * shape.spatial);
    for_each_element(shape, [&](auto i, auto c) { mean[c] += x[i] / m; });
    for_each_element(
        shape, [&](auto i, auto c) { deviation[c] += (x[i] - mean[c]) * (x[i] - mean[c]) / m; });
    for (T& value : deviation) value = std::sqrt(value + T(options.epsilon));
    const auto normal = [&](auto i, auto c) { return (x[i] - mean[c]) / deviation[c]; };
    for_each_element(shape, [&](auto i, auto c) {
      const T t = gamma[c] * normal(i, c) + beta[c] + (residual.empty() ? T(0) : residual[i]);
      y[i] = options.has_relu && t <= 0 ? T(0) : t;
      gradient_residual[i] = options.has_relu && t <= 0 ? T(0) : gradient_y[i];
      gradient_beta[c] += gradient_residual[i];
      gradient_gamma[c] += gradient_residual[i] * normal(i, c);
    });
    for_each_element(shape, [&](auto i, auto c) {
      gradient_x[i] =
          gamma[c] / deviation[c] *
          (gradient_residual[i] - gradient_beta[c] / m - normal(i, c) * gradient_gamma[c] / m);
    });
  }
};

}  // namespace trireme::kernels::reference
