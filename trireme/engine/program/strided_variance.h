#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::program {

/// Whether ATen's batch norm goes through the input by its strides, since it is dense in no memory format. It updates
/// running statistics in f64 then, those of an f32 input from a variance that was never rounded.
bool is_strided(const at::Tensor& input);

/// The unbiased variance of each channel, in f64, added up in the order in which ATen does it there.
///
/// input   f32 [N, C, ...], strided.
/// mean    f32 [C], of the batch.
at::Tensor strided_variance(const at::Tensor& input, const at::Tensor& mean);

}  // namespace trireme::program
