#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::program {

/// A copy of `tensor` in memory of its own with the same strides, as another stage gets it: which
/// kernel runs, and so which bits come out, may depend on strides.
///
/// Dense tensors are copied element by element; others (expanded, slices) with all the memory that
/// they span. No gradient is recorded.
at::Tensor copy_across(const at::Tensor& tensor);

}  // namespace trireme::program
