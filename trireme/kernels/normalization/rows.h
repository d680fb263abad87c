#pragma once

#include <cstdint>

namespace trireme::kernels::internal {

// The passes of a batch norm over one row. Channels first: a row is a channel of one sample, with
// one mean and one factor. Channels last: a row is one place, with a mean and a factor for each
// channel.

struct Sums {
  double first = 0;
  double second = 0;
};

/// What normalises: y = (x - mean) * factor + bias.
struct Forward {
  float mean, factor, bias;
};

/// What the gradient is made of: dx = factor * g + slope * (x - mean) + offset.
struct Backward {
  float mean, factor, slope, offset;
};

/// As above, [channels] each.
struct ForwardVectors {
  const float *mean, *factor, *bias;
};
struct BackwardVectors {
  const float *mean, *factor, *slope, *offset;
};

/// Masks and residuals may be null.
struct RowLoops {
  /// Of x - shift and its square.
  Sums (*sums)(const float* x, std::int64_t n, float shift);
  void (*apply)(const Forward& terms, const float* x, const float* residual, std::int64_t n,
                float* y, std::uint16_t* mask);
  /// Of g and g (x - mean).
  Sums (*gradient_sums)(const float* gradient, const std::uint16_t* mask, const float* x,
                        std::int64_t n, float mean);
  void (*gradient)(const Backward& terms, const float* gradient, const std::uint16_t* mask,
                   const float* x, std::int64_t n, float* gradient_x, float* gradient_residual);

  /// Adds to first [n] and second [n].
  void (*add_sums)(const float* x, const float* shift, std::int64_t n, float* first, float* second);
  void (*apply_last)(const ForwardVectors& terms, const float* x, const float* residual,
                     std::int64_t n, float* y, std::uint16_t* mask);
  void (*add_gradient_sums)(const float* gradient, const std::uint16_t* mask, const float* x,
                            const float* mean, std::int64_t n, float* first, float* second);
  void (*gradient_last)(const BackwardVectors& terms, const float* gradient,
                        const std::uint16_t* mask, const float* x, std::int64_t n,
                        float* gradient_x, float* gradient_residual);
};

/// Of the instruction set that kernels run with.
const RowLoops& row_loops();

}  // namespace trireme::kernels::internal
