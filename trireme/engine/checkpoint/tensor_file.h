#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/safetensors.h"

namespace trireme::checkpoint {

/// Tensors that are to be written as one safetensors file.
class TensorFile {
 public:
  /// tensor   on CPU, any strides; a dense copy is kept where it is not dense.
  void add(std::string name, const at::Tensor& tensor);

  bool is_empty() const { return tensors_.empty(); }

  /// From now on it holds copies: who owns the tensors may change them. They are not memory of tensors
  /// (memory_use). Errors   kResourceExhausted.
  void copy();

  /// Those of safetensors::write; leaves nothing to write again.
  safetensors::Written write(const std::filesystem::path& path);

 private:
  std::vector<at::Tensor> dense_;  ///< What the spans of `tensors_` look at.
  std::vector<safetensors::Tensor> tensors_;
  std::unique_ptr<std::byte, decltype(&std::free)> copies_{nullptr, &std::free};
};

/// Rows [begin, end) along the first dimension, as a view; all of one without dimensions.
at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t end);

/// Whether no number of a tensor is NaN or infinite; true of dtypes that have none. On CPU, any
/// strides. Cost: one pass at the speed of memory, where the tensor is dense f32 or f64.
bool is_finite(const at::Tensor& tensor);

}  // namespace trireme::checkpoint
