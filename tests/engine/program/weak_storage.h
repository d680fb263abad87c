#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

namespace trireme::program {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// For tests of what is still held.
inline WeakStorage weak(const at::Tensor& tensor) {
  return WeakStorage(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl()));
}

}  // namespace trireme::program
