#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

struct SgdOptions {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// One step of stochastic gradient descent, element by element, in the arithmetic of
/// `torch::optim::SGD` on a processor with FMA (each line rounds as often as it has operations, a
/// fused multiply-add counting as one; constants are rounded to T first):
///
///     g   = fma(weight_decay, p, g)                            if weight_decay is not 0
///     buf = g                                                  in the first step
///     buf = fma(1 - dampening, g, momentum * buf)              later
///     g   = fma(momentum, buf, g) if nesterov, else buf        if momentum is not 0
///     p   = fma(-learning_rate, g, p)
///
/// The result of an element depends on nothing but its own values: not on its position, on n or on
/// the vector width.
///
/// first_step   whether the momentum buffer is to be written instead of used.
/// gradient     [n], left as it is.
/// buffer       [n] momentum buffer, updated; may be null where momentum is 0. bf16 is rounded to
///              nearest, ties to even, as it is kept; the parameter is given the buffer unrounded.
/// parameter    [n], updated. No arrays overlap.
/// spread       threads share the elements; they change nothing.
void sgd(const SgdOptions& options, bool first_step, const float* gradient, float* buffer,
         float* parameter, std::int64_t n, const Spread& spread = on_caller);
void sgd(const SgdOptions& options, bool first_step, const double* gradient, double* buffer,
         double* parameter, std::int64_t n, const Spread& spread = on_caller);
void sgd(const SgdOptions& options, bool first_step, const float* gradient, Bf16* buffer,
         float* parameter, std::int64_t n, const Spread& spread = on_caller);

}  // namespace trireme::kernels
