#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::operators {

/// -log softmax(logits)[class], of every row: `torch::nll_loss` of `log_softmax` without a tensor of the logits' size in
/// between, and with a backward that computes only rows whose gradient is not 0 (kernels/loss/cross_entropy.h).
///
/// logits    f32 [..., K]; classes i64 [...], 0 to K - 1: mark rows that do not count by multiplying their loss with 0.
/// Returns   f32 [...].
/// Errors    kInvalidArgument for other types and shapes, and naming a row whose class is none.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& classes);

}  // namespace trireme::operators
