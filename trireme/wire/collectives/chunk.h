#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/dtype.h"

namespace trireme::collectives {

/// Part of a buffer that a group rank owns: elements [begin, end).
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Chunk&) const = default;
};

/// Elements of chunk `index` of `size` nearly equal ones; edges are multiples of 16 elements.
Chunk chunk_of(std::int64_t num_elements, int size, int index);

/// By rank: what each sums where the last `num_reducers` ranks have no data of their own, such that
/// all links carry about as much. Edges as above.
///
///     n ranks, s of them reducers, w = n - s; a share x of each of the w, y of each reducer
///     a rank with data sends and receives   1 + (w - 2) x      a reducer   w y      w x + s y = 1
///
/// Source  Jiang et al., OSDI 2020 (BytePS), whose servers are such ranks.
std::vector<Chunk> reducer_chunks(std::int64_t num_elements, int size, int num_reducers);

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
