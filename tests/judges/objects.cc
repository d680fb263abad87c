#include <algorithm>
#include <span>
#include <vector>

#include "tests/judges/judge.h"
#include "trireme/data.h"

namespace trireme::judges {
namespace {

/// Bytes of a field of all records, one behind the other, and how many each has.
///
/// option path, option field -> bytes [n] u8, sizes [records] i64
Tensors fields(const Tensors& inputs) {
  const auto records = data::open_records({inputs.options.at("path")});
  std::vector<std::byte> bytes;
  Tensors outputs;
  const auto sizes = outputs.add<std::int64_t>("sizes", {records->num_records()});
  for (std::int64_t i = 0; i < records->num_records(); ++i) {
    const auto field = records->read(i, inputs.options.at("field"));
    sizes[static_cast<std::size_t>(i)] = std::ssize(field);
    bytes.insert(bytes.end(), field.begin(), field.end());
  }
  std::ranges::copy(
      bytes,
      std::as_writable_bytes(outputs.add<std::uint8_t>("bytes", {std::ssize(bytes)})).begin());
  return outputs;
}

}  // namespace

void add_objects(Operations& operations) { operations["fields"] = fields; }

}  // namespace trireme::judges
