#include "trireme/engine/capture/views.h"

#include <utility>

namespace trireme::capture {

c10::Storage empty_storage(std::size_t bytes) {
  return {c10::Storage::use_byte_size_t(), bytes, at::DataPtr(nullptr, at::kCPU),
          /*allocator=*/nullptr, /*resizable=*/false};
}

void place(const c10::Storage& storage, void* data) {
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(data, at::kCPU));
}

at::Tensor make_view(const c10::Storage& storage, const at::Tensor& like, std::int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
  c10::TensorImpl* impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), offset);
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (like.requires_grad()) impl->set_requires_grad(true);
  return view;
}

bool is_same_view(const at::Tensor& view, const at::Tensor& like, std::int64_t offset) {
  return view.storage_offset() == offset && view.dtype() == like.dtype() &&
         view.sizes() == like.sizes() && view.strides() == like.strides() &&
         view.requires_grad() == like.requires_grad() &&
         view.unsafeGetTensorImpl()->is_wrapped_number() ==
             like.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace trireme::capture
