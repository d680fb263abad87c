#include "trireme/wire/transport/byte_form.h"

#include "trireme/base/error.h"

namespace trireme::transport {

ByteWriter& ByteWriter::text(std::string_view text) {
  integer(static_cast<std::uint32_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

std::string ByteReader::text() {
  const std::span<const std::byte> bytes = next(integer<std::uint32_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ByteReader::finish() const {
  if (bytes_.empty()) return;
  throw Error(ErrorKind::kCorruptData,
              "a message has " + std::to_string(bytes_.size()) + " bytes too many");
}

std::span<const std::byte> ByteReader::next(std::size_t num_bytes) {
  if (num_bytes > bytes_.size()) {
    throw Error(ErrorKind::kCorruptData, "a message ends too early: " + std::to_string(num_bytes) +
                                             " more bytes expected, " +
                                             std::to_string(bytes_.size()) + " there");
  }
  const std::span<const std::byte> result = bytes_.first(num_bytes);
  bytes_ = bytes_.subspan(num_bytes);
  return result;
}

}  // namespace trireme::transport
