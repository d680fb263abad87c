#include "trireme/wire/system/byte_form.h"

#include <string>
#include <string_view>

#include "trireme/error.h"

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

namespace {

constexpr std::size_t kMaxMessage = 60'000;
constexpr std::size_t kMaxName = 1'000;

template <typename T>
void write(ByteWriter& writer, const std::optional<T>& value) {
  writer.integer(static_cast<std::uint8_t>(value.has_value()));
  writer.integer(static_cast<std::int64_t>(value.value_or(0)));
}

template <typename T>
std::optional<T> read(ByteReader& reader) {
  const bool has_value = reader.integer<std::uint8_t>() != 0;
  const auto value = static_cast<T>(reader.integer<std::int64_t>());
  return has_value ? std::optional<T>(value) : std::nullopt;
}

}  // namespace

Error flattened(const Error& error) {
  // what() is kind, message, context, then the causes: the rest beside an error without causes.
  Error plain(error.kind(), error.message(), error.where());
  plain.add(error.context());
  const std::string_view causes =
      std::string_view(error.what()).substr(std::string_view(plain.what()).size());
  Error result(error.kind(), error.message() + std::string(causes), error.where());
  result.add(error.context());
  return result;
}

std::vector<std::byte> error_to_bytes(const Error& error) {
  const ErrorContext& context = error.context();
  ByteWriter writer;
  writer.integer(static_cast<std::uint8_t>(error.kind()));
  writer.text(std::string_view(error.message()).substr(0, kMaxMessage));
  write(writer, context.rank);
  write(writer, context.peer);
  writer.text(std::string_view(context.group).substr(0, kMaxName));
  writer.text(std::string_view(context.operation).substr(0, kMaxName));
  write(writer, context.sequence);
  write(writer, context.step);
  write(writer, context.microbatch);
  return writer.take();
}

Error error_from_bytes(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto kind = reader.integer<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(ErrorKind::kModelFailure)) {
    throw Error(ErrorKind::kCorruptData, "no kind of error has number " + std::to_string(kind));
  }
  Error error(static_cast<ErrorKind>(kind), reader.text());
  ErrorContext context;
  context.rank = read<int>(reader);
  context.peer = read<int>(reader);
  context.group = reader.text();
  context.operation = reader.text();
  context.sequence = read<std::int64_t>(reader);
  context.step = read<std::int64_t>(reader);
  context.microbatch = read<std::int64_t>(reader);
  reader.finish();
  error.add(context);
  return error;
}

}  // namespace trireme::transport
