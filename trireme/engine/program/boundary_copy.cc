#include "trireme/engine/program/boundary_copy.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

namespace trireme::program {

std::int64_t span_elements(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t span = 1;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    span += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return span;
}

void copy_span(const at::Tensor& tensor, const at::Tensor& span) {
  const at::NoGradGuard no_grad;
  span.copy_(tensor.detach().as_strided(span.sizes(), {1}, tensor.storage_offset()));
}

at::Tensor copy_across(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (tensor.layout() != at::kStrided) return copy_across(tensor.detach().to_dense());
  const at::Tensor span = at::empty({span_elements(tensor)}, tensor.options());
  copy_span(tensor, span);
  return span.as_strided(tensor.sizes(), tensor.strides(), 0);
}

}  // namespace trireme::program
