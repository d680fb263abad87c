#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace trireme::capture {

/// A storage of `bytes` without memory.
c10::Storage empty_storage(std::size_t bytes);

/// Lets `storage` lie at `data`, whose owner is another.
void place(const c10::Storage& storage, void* data);

/// A tensor on `storage` that lies in it as `like` in its own, but for where it begins: `offset` elements from the
/// storage's first. Not part of any backward, though it says that it is where `like` does: kernels may ask.
at::Tensor make_view(const c10::Storage& storage, const at::Tensor& like, std::int64_t offset);

/// Whether `view` is what make_view makes of `like`.
bool is_same_view(const at::Tensor& view, const at::Tensor& like, std::int64_t offset);

}  // namespace trireme::capture
