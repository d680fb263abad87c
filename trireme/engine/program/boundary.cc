#include "trireme/engine/program/boundary.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

namespace trireme::program {
namespace {

/// Elements from the first to the last that `tensor` reaches.
std::int64_t span_elements(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t span = 1;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    span += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return span;
}

}  // namespace

at::Tensor copy_across(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (tensor.layout() != at::kStrided) return tensor.detach().clone();
  if (tensor.is_non_overlapping_and_dense()) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options())
        .copy_(tensor.detach());
  }
  const at::Tensor span =
      tensor.detach().as_strided({span_elements(tensor)}, {1}, tensor.storage_offset()).clone();
  return span.as_strided(tensor.sizes(), tensor.strides(), 0);
}

}  // namespace trireme::program
