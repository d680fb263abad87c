#include "trireme/engine/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "trireme/engine/checkpoint/tensor_file.h"
#include "trireme/engine/record/torch_terms.h"
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

namespace {

std::vector<Extent> extents(const std::vector<KeyedTensor>& items) {
  std::vector<Extent> result;
  for (const KeyedTensor& item : items) {
    const std::int64_t rows = num_rows(item.tensor.sizes().vec());
    const auto bytes = static_cast<std::int64_t>(item.tensor.nbytes());
    result.push_back({rows, rows == 0 ? 0 : bytes / rows});
  }
  return result;
}

}  // namespace

ShareFile::ShareFile(std::string name, const std::vector<KeyedTensor>& items, const Share& share)
    : name_(std::move(name)) {
  std::vector<KeyedTensor> shared;
  for (const KeyedTensor& item : items) {
    if (!item.is_own) shared.push_back(item);
    if (item.is_own) add(item, {0, 0, num_rows(item.tensor.sizes().vec())});
  }
  const auto shares = split(extents(shared), share.parts);
  for (const Piece& piece : shares[share.part]) add(shared[piece.tensor], piece);
}

void ShareFile::add(const KeyedTensor& item, const Piece& piece) {
  const RowsOf whole = item.rows_of.value_or(RowsOf{item.tensor.sizes().vec(), 0});
  TensorEntry entry{record::to_dtype(item.tensor.scalar_type()),
                    whole.shape,
                    {{name_, whole.begin + piece.begin, whole.begin + piece.end}}};
  const at::Tensor rows = rows_of(item.tensor, piece.begin, piece.end);
  file_.add(name_in_file(item.key, entry, entry.slices[0]), rows);
  contents_.tensors[item.key] = std::move(entry);
  // Buffers may hold infinite numbers on purpose: masks.
  const bool may_count = !item.key.starts_with("buffers/") &&
                         (contents_.not_finite.empty() || item.key < contents_.not_finite);
  if (may_count && !is_finite(rows)) contents_.not_finite = item.key;
}

Contents ShareFile::write(const std::filesystem::path& folder) {
  if (!file_.is_empty()) {
    const safetensors::Written written = file_.write(folder / name_);
    contents_.files.push_back({name_, static_cast<std::int64_t>(written.bytes), written.sha256});
  }
  return std::move(contents_);
}

}  // namespace trireme::checkpoint
