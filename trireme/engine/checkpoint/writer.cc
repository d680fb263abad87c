#include "trireme/engine/checkpoint/writer.h"

#include <utility>

#include "trireme/base/safetensors.h"
#include "trireme/engine/checkpoint/split.h"
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

at::Tensor rows_of(const at::Tensor& tensor, const Piece& piece) {
  const at::Tensor rows =
      tensor.dim() == 0 ? tensor : tensor.narrow(0, piece.begin, piece.end - piece.begin);
  return rows.detach().contiguous();
}

std::span<const std::byte> bytes_of(const at::Tensor& dense) {
  return {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()};
}

}  // namespace

Contents write_share(const std::filesystem::path& folder, const std::string& name,
                     const std::vector<Item>& items, int part, int parts) {
  Contents contents;
  std::vector<at::Tensor> kept;  // what the spans below look at
  std::vector<safetensors::Tensor> tensors;
  const auto shares = split(extents(items), parts);
  for (const Piece& piece : shares[part]) {
    const Item& item = items[piece.tensor];
    TensorEntry entry{record::to_dtype(item.tensor.scalar_type()),
                      item.tensor.sizes().vec(),
                      {{name, piece.begin, piece.end}}};
    kept.push_back(rows_of(item.tensor, piece));
    tensors.push_back({name_in_file(item.key, entry, entry.slices[0]), entry.dtype,
                       kept.back().sizes().vec(), bytes_of(kept.back())});
    contents.tensors[item.key] = std::move(entry);
  }
  if (tensors.empty()) return contents;
  const safetensors::Written written = safetensors::write(folder / name, std::move(tensors));
  contents.files.push_back({name, static_cast<std::int64_t>(written.bytes), written.sha256});
  return contents;
}

}  // namespace trireme::checkpoint
