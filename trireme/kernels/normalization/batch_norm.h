#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

/// Batch normalisation, alone or with what follows it in a residual block, in one go:
///
///     mean = sum x / m      var = sum (x - mean)^2 / m      over the m elements of a channel
///     t = gamma (x - mean) / sqrt(var + epsilon) + beta + residual
///     y = relu(t) or t
///
/// and backward, with g = 0 where there is ReLU and t <= 0, else dy, and
/// n = (x - mean) / sqrt(var + epsilon):
///
///     dresidual = g      dbeta = sum g      dgamma = sum g n
///     dx = gamma / sqrt(var + epsilon) (g - dbeta / m - n dgamma / m)
///
/// ReLU's choice is kept as 1 bit for each element, so that backward reads neither y nor the
/// residual. A NaN passes ReLU, and its gradient does, as in torch. Instance norm is a batch norm
/// of each sample alone.
///
/// Sums: within a run of at most 1,024 elements of a row (channels first) or 64 rows (channels
/// last) in f32, of x - x_0 so that little cancels; runs are added in f64. The order depends on the
/// layout alone: not on the instruction set, not on threads.
///
/// Elements are f32 or bf16, everything else is f32 or f64: of bf16 each result is rounded once.
///
/// Source: Ioffe and Szegedy, "Batch normalization", ICML 2015, algorithm 1.
struct BatchNormOptions {
  float epsilon = 1e-5F;
  bool has_relu = false;
};

/// Elements [batch, channels, spatial], or [batch, spatial, channels] where channels are last;
/// spatial is height x width, or depth x height x width.
struct BatchNormShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t spatial = 0;
  bool has_channels_last = false;

  std::int64_t count() const { return batch * channels * spatial; }
};

/// Sums of one value over the ranks that share statistics. Called once in forward and once in
/// backward, with the same sizes on all ranks.
class StatisticsGroup {
 public:
  virtual ~StatisticsGroup() = default;
  virtual void sum(std::span<double> values) = 0;
};

/// What forward makes beside y; backward reads it.
struct BatchNormStatistics {
  float* mean = nullptr;               ///< [channels]
  float* inverse_deviation = nullptr;  ///< [channels] 1 / sqrt(var + epsilon)
  double* count = nullptr;             ///< [1] m, over all ranks of the group.
};

/// T: float or Bf16.
template <typename T>
struct BatchNormForwardOf {
  const T* x = nullptr;
  const T* residual = nullptr;    ///< Shaped like x; null: none.
  const float* gamma = nullptr;   ///< [channels]
  const float* beta = nullptr;    ///< [channels]
  T* y = nullptr;                 ///< May be x or residual.
  std::uint16_t* mask = nullptr;  ///< [mask_words(shape)] with ReLU, else null.
  float* variance = nullptr;      ///< [channels], written: var; null: not wanted.
  BatchNormStatistics statistics;
};
using BatchNormForward = BatchNormForwardOf<float>;

template <typename T>
struct BatchNormBackwardOf {
  const T* gradient_y = nullptr;
  const T* x = nullptr;
  const float* gamma = nullptr;
  const std::uint16_t* mask = nullptr;  ///< From forward; null without ReLU.
  BatchNormStatistics statistics;       ///< From forward.
  T* gradient_x = nullptr;              ///< May be gradient_y where there is no residual.
  T* gradient_residual = nullptr;       ///< May be gradient_y; null: none.
  float* gradient_gamma = nullptr;      ///< [channels], of this rank's elements.
  float* gradient_beta = nullptr;       ///< [channels], likewise.
};
using BatchNormBackward = BatchNormBackwardOf<float>;

/// 16-bit words of a mask: each row of `spatial` (channels first) or `channels` elements has its
/// own.
std::int64_t mask_words(const BatchNormShape& shape);

/// group    sums over the ranks that normalise together, of which some may have no elements; null:
///          this rank alone.
/// Errors   kInvalidArgument where a channel has fewer than 2 elements in all ranks together; on
///          all ranks of a group, also where another one failed before the sum.
/// Cost     x is read once from memory where a channel (channels first) fits into the cache, else
///          twice; the residual once, y written once.
void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForward& arrays, StatisticsGroup* group = nullptr,
                        const Spread& spread = on_caller);
void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForwardOf<Bf16>& arrays, StatisticsGroup* group = nullptr,
                        const Spread& spread = on_caller);

/// Cost   gradient_y and x are read once or twice, as above, the mask as well; the results written
///        once.
void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arrays,
                         StatisticsGroup* group = nullptr, const Spread& spread = on_caller);
void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackwardOf<Bf16>& arrays,
                         StatisticsGroup* group = nullptr, const Spread& spread = on_caller);

}  // namespace trireme::kernels
