#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trireme::program {

/// A copy of `tensor` in memory of its own with the same strides, as another stage gets it: which
/// kernel runs, and so which bits come out, may depend on strides.
///
/// Dense tensors are copied element by element; others (expanded, slices) with all the memory that
/// they span. No gradient is recorded.
at::Tensor copy_across(const at::Tensor& tensor);

/// Elements of memory from the first to the last that `tensor` reaches; strided tensors only.
std::int64_t span_elements(const at::Tensor& tensor);

/// Copies the memory that `tensor` spans to `span`: [span_elements(tensor)], dense, same dtype.
void copy_span(const at::Tensor& tensor, const at::Tensor& span);

}  // namespace trireme::program
