#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace trireme::collectives
