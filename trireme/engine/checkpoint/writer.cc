#include "trireme/engine/checkpoint/writer.h"

#include <utility>

#include "trireme/engine/checkpoint/finite.h"
#include "trireme/engine/checkpoint/split.h"
#include "trireme/engine/checkpoint/tensor_file.h"
#include "trireme/engine/record/convert.h"

namespace trireme::checkpoint {
namespace {

std::vector<Extent> extents(const std::vector<Item>& items) {
  std::vector<Extent> result;
  for (const Item& item : items) {
    const std::int64_t rows = num_rows(item.tensor.sizes().vec());
    const auto bytes = static_cast<std::int64_t>(item.tensor.nbytes());
    result.push_back({rows, rows == 0 ? 0 : bytes / rows});
  }
  return result;
}

}  // namespace

Contents write_share(const std::filesystem::path& path, const std::vector<Item>& items,
                     const Share& share) {
  const std::string name = path.filename().string();
  Contents contents;
  TensorFile file;
  const auto shares = split(extents(items), share.parts);
  for (const Piece& piece : shares[share.part]) {
    const Item& item = items[piece.tensor];
    TensorEntry entry{record::to_dtype(item.tensor.scalar_type()),
                      item.tensor.sizes().vec(),
                      {{name, piece.begin, piece.end}}};
    file.add(name_in_file(item.key, entry, entry.slices[0]),
             rows_of(item.tensor, piece.begin, piece.end));
    contents.tensors[item.key] = std::move(entry);
    // Buffers may hold infinite numbers on purpose: masks.
    const bool may_count = !item.key.starts_with("buffers/") &&
                           (contents.not_finite.empty() || item.key < contents.not_finite);
    if (may_count && !is_finite(rows_of(item.tensor, piece.begin, piece.end))) {
      contents.not_finite = item.key;
    }
  }
  if (file.is_empty()) return contents;
  const safetensors::Written written = file.write(path);
  contents.files.push_back({name, static_cast<std::int64_t>(written.bytes), written.sha256});
  return contents;
}

}  // namespace trireme::checkpoint
