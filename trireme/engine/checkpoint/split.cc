#include "trireme/engine/checkpoint/split.h"

#include <algorithm>

#include "trireme/error.h"

namespace trireme::checkpoint {

std::vector<std::vector<Piece>> split(std::span<const Extent> tensors, int parts) {
  if (parts < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "a checkpoint is divided among 1 or more, got " + std::to_string(parts));
  }
  std::int64_t total = 0;
  for (const Extent& tensor : tensors) total += tensor.rows * tensor.row_bytes;
  std::vector<std::vector<Piece>> result(static_cast<std::size_t>(parts));
  std::int64_t before = 0;  // bytes of the tensors so far
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Extent& tensor = tensors[t];
    // The first row of part p: the first that begins at or after p / parts of all bytes.
    const auto first_row = [&](int part) {
      const auto edge = static_cast<std::int64_t>(static_cast<__int128>(total) * part / parts);
      const std::int64_t bytes = std::max<std::int64_t>(edge - before, 0);
      const std::int64_t row =
          tensor.row_bytes == 0 ? 0 : (bytes + tensor.row_bytes - 1) / tensor.row_bytes;
      return part == parts ? tensor.rows : std::min(row, tensor.rows);
    };
    for (int part = 0; part < parts; ++part) {
      const Piece piece{static_cast<int>(t), first_row(part), first_row(part + 1)};
      const bool is_empty_tensor = tensor.rows == 0 && part == 0;
      if (piece.begin < piece.end || is_empty_tensor) result[part].push_back(piece);
    }
    before += tensor.rows * tensor.row_bytes;
  }
  return result;
}

}  // namespace trireme::checkpoint
