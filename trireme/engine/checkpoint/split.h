#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// A tensor as far as dividing it goes.
struct Extent {
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
};

/// Rows [begin, end) of the tensor at a position of a list.
struct Piece {
  int tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Piece&) const = default;
};

/// Divides a list of tensors among `parts` writers: each has a contiguous run of the rows of all,
/// and at most one row more than its equal share of the bytes. Every row is in one part; a tensor
/// without rows is in the first. kInvalidArgument where there is no part.
std::vector<std::vector<Piece>> split(std::span<const Extent> tensors, int parts);

}  // namespace trireme::checkpoint
