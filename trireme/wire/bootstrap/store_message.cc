#include "trireme/wire/bootstrap/store_message.h"

#include "trireme/error.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport {
namespace {

constexpr std::size_t kFixedBytes = 1 + 8 + 8 + 4 + 4;

}  // namespace

std::vector<std::byte> to_bytes(const StoreMessage& message) {
  const std::size_t length = kFixedBytes + message.key.size() + message.value.size();
  ByteWriter writer;
  writer.integer(static_cast<std::uint32_t>(length))
      .integer(static_cast<std::uint8_t>(message.verb))
      .integer(message.id)
      .integer(message.number)
      .text(message.key)
      .text(message.value);
  return writer.take();
}

std::string pack(std::span<const std::string> texts) {
  ByteWriter writer;
  writer.integer(static_cast<std::uint32_t>(texts.size()));
  std::size_t size = 4;
  for (const std::string& text : texts) size += 4 + text.size();
  if (texts.size() > kMaxStoreBatch || size > kMaxStoreValue) {
    throw Error(ErrorKind::kInvalidArgument, "one request of the store carries at most " +
                                                 std::to_string(kMaxStoreBatch) + " texts and " +
                                                 std::to_string(kMaxStoreValue) + " bytes, got " +
                                                 std::to_string(texts.size()) + " and " +
                                                 std::to_string(size) + "; ask for fewer at once");
  }
  for (const std::string& text : texts) writer.text(text);
  const std::vector<std::byte> bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> unpack(std::string_view packed) {
  ByteReader reader(std::as_bytes(std::span(packed)));
  const auto count = reader.integer<std::uint32_t>();
  if (count > kMaxStoreBatch) {
    throw Error(ErrorKind::kCorruptData, "no pack has " + std::to_string(count) + " texts");
  }
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < count; ++i) texts.push_back(reader.text());
  reader.finish();
  return texts;
}

std::size_t store_message_length(std::span<const std::byte> length) {
  const auto result = ByteReader(length).integer<std::uint32_t>();
  if (result < kFixedBytes || result > kFixedBytes + kMaxStoreKey + kMaxStoreValue) {
    throw Error(ErrorKind::kCorruptData,
                "no message of the store has " + std::to_string(result) + " bytes");
  }
  return result;
}

StoreMessage parse_store_message(std::span<const std::byte> body) {
  ByteReader reader(body);
  const auto verb = reader.integer<std::uint8_t>();
  StoreMessage message;
  message.id = reader.integer<std::uint64_t>();
  message.number = reader.integer<std::int64_t>();
  message.key = reader.text();
  message.value = reader.text();
  reader.finish();
  if (verb > static_cast<std::uint8_t>(StoreVerb::kRemove) || message.key.size() > kMaxStoreKey ||
      message.value.size() > kMaxStoreValue) {
    throw Error(ErrorKind::kCorruptData, "bytes that are no message of the store");
  }
  message.verb = static_cast<StoreVerb>(verb);
  return message;
}

std::optional<StoreMessage> take_store_message(std::vector<std::byte>& received) {
  if (received.size() < kStoreLengthBytes) return std::nullopt;
  const std::span<const std::byte> bytes(received);
  const std::size_t length = store_message_length(bytes.first(kStoreLengthBytes));
  if (bytes.size() < kStoreLengthBytes + length) return std::nullopt;
  StoreMessage message = parse_store_message(bytes.subspan(kStoreLengthBytes, length));
  received.erase(received.begin(),
                 received.begin() + static_cast<std::ptrdiff_t>(kStoreLengthBytes + length));
  return message;
}

}  // namespace trireme::transport
