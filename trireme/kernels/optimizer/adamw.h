#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

struct AdamwOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
};

/// root[i] = sqrt(x[i]) for i < n; no overlap.
template <typename T>
using SquareRoots = void (*)(const T* x, T* root, std::int64_t n);

/// One step of AdamW, element by element, in the arithmetic of `torch::optim::AdamW` on a processor
/// with FMA (each line rounds as often as it has operations, a fused multiply-add counting as one;
/// constants, the parentheses among them, are computed in f64 and rounded to T first):
///
///     p    = p * (1 - learning_rate * weight_decay)            if weight_decay is not 0
///     m    = fma((1 - beta1), g, m * beta1)
///     v    = fma((1 - beta2) * g, g, v * beta2)
///     d    = sqrt(v) / (sqrt(1 - beta2^step)) + epsilon
///     p    = p + (-learning_rate / (1 - beta1^step)) * m / d
///
/// The result of an element depends on nothing but its own values: not on its position, on n or on
/// the vector width.
///
/// step        counts from 1, else kInvalidArgument.
/// gradient    [n], left as it is.
/// exp_avg     [n] m, updated; zeros before the first step.
/// exp_avg_sq  [n] v, updated; zeros before the first step.
/// parameter   [n], updated. No arrays overlap.
/// roots       where square roots are taken; null: here, correctly rounded. Torch's own come from
///             MKL and are off by one in the last place for about a sixth of all f32, so equality
///             with torch::optim::AdamW to the bit needs torch's function here.
/// spread      threads share the elements; they change nothing.
/// Source      Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019,
/// algorithm 2.
void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, float* exp_avg,
           float* exp_avg_sq, float* parameter, std::int64_t n, SquareRoots<float> roots = nullptr,
           const Spread& spread = on_caller);
void adamw(const AdamwOptions& options, std::int64_t step, const double* gradient, double* exp_avg,
           double* exp_avg_sq, double* parameter, std::int64_t n,
           SquareRoots<double> roots = nullptr, const Spread& spread = on_caller);

/// The same with moments kept as bf16, rounded to nearest, ties to even; the parameter is given
/// them unrounded. A moment stands still where a step changes it by less than 2^-9 of itself: v
/// wants beta2 <= 0.99.
void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, Bf16* exp_avg,
           Bf16* exp_avg_sq, float* parameter, std::int64_t n, const Spread& spread = on_caller);

/// The same with all kept as bf16 and no copy in f32: 6 bytes for each element instead of 12.
/// Whatever is written is rounded at random (half.h), so that changes of less than a unit count on
/// average and any beta2 will do.
///
/// seed   of this step of this tensor: stream_seed(seed, {step, index}). Element i takes 16 bits of
///        Philox with the key {lower, upper half of seed}: with j = i mod 1024, the lower half of
///        word j / 256 of the counter {j / 2 mod 128, i / 1024 lower, upper, 0} where j is even,
///        the upper half where it is odd. exp_avg takes them rotated right by 5 bits, exp_avg_sq
///        by 10.
void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, const Bf16* gradient,
           Bf16* exp_avg, Bf16* exp_avg_sq, Bf16* parameter, std::int64_t n,
           const Spread& spread = on_caller);

}  // namespace trireme::kernels
