#pragma once

#include <cstdint>
#include <optional>

#include "trireme/kernels/half.h"

namespace trireme::kernels {

/// Adafactor: of the second moments of a matrix it keeps the means of rows and columns.
///
///     alpha  = rate max(epsilon2, rms(p))              rate alone unless scales_by_parameter
///     b      = 1 - step^-decay_exponent
///     row    = b row + (1 - b) (mean over columns of g^2 + epsilon1)      column likewise
///     u      = g / sqrt(row column / (mean of row))    of each matrix
///     u      = u / max(1, rms(u) / clip)               rms over the tensor
///     m      = beta1 m + (1 - beta1) alpha u           alpha u where beta1 is 0
///     p      = (1 - alpha weight_decay) p - m
///
/// A vector keeps v = b v + (1 - b) (g^2 + epsilon1) and has u = g / sqrt(v).
///
/// This is the paper's algorithm 6 with means instead of sums, and with the momentum and the decay
/// of T5's code. timm's Adafactor is equal, but has alpha = learning_rate where one is given;
/// pytorch_optimizer's is equal, but has b <= 0.999. torch.optim's has learning_rate where the
/// relative rate has 1e-2, takes epsilon1 as a lower limit (of sqrt(row column / mean) and of the
/// mean), no m, and decays by learning_rate alone.
///
/// Sums are f64: those of a row by 16 virtual lanes, those of a column row by row, rms(p) by norm
/// block (norm/norm.h), rms(u) row by row, of a vector by norm block. Means and their roots are
/// taken in f64 and rounded once; each operation on an element rounds to f32. The same bits for
/// every set of instructions.
///
/// Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML
/// 2018.
/// Cost: 24 bytes read or written for each element, 32 with m; three passes over g.
struct AdafactorOptions {
  std::optional<double> learning_rate;  ///< Absent: relative, min(1e-2, 1 / sqrt(step)).
  bool warms_up = false;                ///< The relative rate starts with 1e-6 step, not 1e-2.
  bool scales_by_parameter = true;
  double decay_exponent = 0.8;
  double clip = 1;
  double beta1 = 0;
  double weight_decay = 0;
  double epsilon1 = 1e-30;
  double epsilon2 = 1e-3;
};

/// A tensor's last two dimensions, and the product of those before.
struct AdafactorShape {
  std::int64_t num_matrices, rows, columns;
};

/// gradient   [num_matrices, rows, columns], left as it is.
/// row        [num_matrices, rows], updated; any values before the first step.
/// column     [num_matrices, columns], updated likewise.
/// m          as gradient, updated; not used where beta1 is 0. bf16 is rounded to nearest, ties to
///            even, as it is kept; the parameter is given m unrounded.
/// parameter  as gradient, updated. No arrays overlap.
/// Errors     kInvalidArgument where step is below 1, a dimension below 0, or m null and needed.
void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, float* m, float* parameter);
void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, Bf16* m, float* parameter);

/// The same of a vector [n].
void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               float* m, float* parameter, std::int64_t n);
void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               Bf16* m, float* parameter, std::int64_t n);

namespace internal {

void check(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
           const void* m);

/// alpha where it is not scaled.
double unscaled_rate(const AdafactorOptions& options, std::int64_t step);

/// 1 - b.
double rest_of(const AdafactorOptions& options, std::int64_t step);

}  // namespace internal

}  // namespace trireme::kernels
