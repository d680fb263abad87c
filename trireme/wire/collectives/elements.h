#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/base/dtype.h"
#include "trireme/wire/collectives/chunk.h"

namespace trireme::collectives {

/// The buffer of an operation that reduces, and what lies in it. A view.
struct Elements {
  std::span<std::byte> bytes;  ///< Aligned to the element; a whole number of them.
  Dtype dtype = Dtype::kU8;

  Elements(std::span<std::byte> memory, Dtype type) : bytes(memory), dtype(type) {}
  Elements(std::span<float> data) : Elements(std::as_writable_bytes(data), Dtype::kF32) {}
  Elements(std::span<double> data) : Elements(std::as_writable_bytes(data), Dtype::kF64) {}

  std::int64_t count() const { return static_cast<std::int64_t>(bytes.size() / size_bytes(dtype)); }

  Elements part(const Chunk& chunk) const {
    const std::size_t size = size_bytes(dtype);
    return {bytes.subspan(static_cast<std::size_t>(chunk.begin) * size,
                          static_cast<std::size_t>(chunk.size()) * size),
            dtype};
  }
};

}  // namespace trireme::collectives
