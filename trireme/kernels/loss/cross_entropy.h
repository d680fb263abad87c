#pragma once

#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::kernels {

/// Rows of logits x, and the class of each.
struct ClassRows {
  const float* logits = nullptr;          ///< [num_rows][num_classes]
  const std::int64_t* classes = nullptr;  ///< [num_rows], 0 to num_classes - 1.
  std::int64_t num_rows = 0;
  std::int64_t num_classes = 0;
};

/// Of each row s = log sum_k e^x_k, and its loss s - x_class.
///
/// s is m + log sum_k e^(x_k - m), m the largest x. Sums are of 16 lanes in f32, k to lane k mod 16, added by the tree over
/// lanes; those of 1024 elements each in f64, in order. A row's results depend on its elements alone. NaN where one is.
///
/// losses, log_sums   [num_rows], written.
/// Errors   kInvalidArgument naming the first row whose class is none, of those that were looked at.
/// Cost     two passes over a row while it is in cache; nothing of the logits' size is written.
void cross_entropy(const ClassRows& rows, float* losses, float* log_sums, const Spread& spread);

/// dloss_r / dx_k = g_r (e^(x_k - s_r) - [k is the class]). Rows whose g is 0 are only filled with 0.
///
/// log_sums, gradients   s and g: [num_rows].
/// made                  [num_rows][num_classes], written.
void cross_entropy_backward(const ClassRows& rows, const float* log_sums, const float* gradients,
                            float* made, const Spread& spread);

namespace internal {

/// The passes over a row, for a set of instructions.
struct CrossEntropyLoops {
  float (*log_sum)(const float* x, std::int64_t n);
  void (*gradient)(const float* x, std::int64_t n, float log_sum, float g, float* made);
};

}  // namespace internal

}  // namespace trireme::kernels
