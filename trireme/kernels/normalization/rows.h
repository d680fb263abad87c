#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"

namespace trireme::kernels::internal {

// The passes of a batch norm over rows. Channels first: a row is a channel of one sample, with one
// mean and one factor. Channels last: a row is one place, with a mean and a factor for each channel.

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

/// Rows that follow each other, one for each place.
struct Rows {
  std::int64_t num_places = 0;
  std::int64_t channels = 0;
};

/// Of elements of type T, which are computed with in f32. Masks and residuals may be null.
template <typename T>
struct RowLoops {
  /// Of x - shift and its square.
  Sums (*sums)(const T* x, std::int64_t n, float shift);
  void (*apply)(const Forward& terms, const T* x, const T* residual, std::int64_t n, T* y,
                std::uint16_t* mask);
  /// Of g and g (x - mean).
  Sums (*gradient_sums)(const T* gradient, const std::uint16_t* mask, const T* x, std::int64_t n,
                        float mean);
  void (*gradient)(const Backward& terms, const T* gradient, const std::uint16_t* mask, const T* x,
                   std::int64_t n, T* gradient_x, T* gradient_residual);

  /// Sets first [channels] and second [channels].
  void (*sums_last)(const T* x, const T* shift, const Rows& rows, float* first, float* second);
  void (*apply_last)(const ForwardVectors& terms, const T* x, const T* residual, const Rows& rows,
                     T* y, std::uint16_t* mask);
  void (*gradient_sums_last)(const T* gradient, const std::uint16_t* mask, const T* x,
                             const float* mean, const Rows& rows, float* first, float* second);
  void (*gradient_last)(const BackwardVectors& terms, const T* gradient, const std::uint16_t* mask,
                        const T* x, const Rows& rows, T* gradient_x, T* gradient_residual);
};

/// Of the instruction set that kernels run with. T: float, Bf16.
template <typename T>
const RowLoops<T>& row_loops();

}  // namespace trireme::kernels::internal
