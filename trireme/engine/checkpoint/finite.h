#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::checkpoint {

/// Whether no number of a tensor is NaN or infinite; true of dtypes that have none. On CPU, any
/// strides. Cost: one pass at the speed of memory, where the tensor is dense f32 or f64.
bool is_finite(const at::Tensor& tensor);

}  // namespace trireme::checkpoint
