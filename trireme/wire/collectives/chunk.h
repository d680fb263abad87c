#pragma once

#include <cstdint>

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

}  // namespace trireme::collectives
