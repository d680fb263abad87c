#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::transport {

/// What clients and server of the store say to each other.
enum class StoreVerb : std::uint8_t {
  kHello,    ///< client: number = its rank. First, and only once.
  kSet,      ///< client: key, value
  kGet,      ///< client: key. Answered when it is set.
  kAdd,      ///< client: key, number. Answered with the sum, as text.
  kCheck,    ///< client: nothing. Answered at once.
  kGoodbye,  ///< client: it ends in good order
  kValue,    ///< server: done; value
  kError,    ///< server: failed; value = an error (error_form.h)
};

/// On the wire: 4 bytes length of the rest, 1 byte verb, 8 bytes id, 8 bytes number, key and value
/// with 4 bytes length each.
struct StoreMessage {
  StoreVerb verb = StoreVerb::kCheck;
  std::uint64_t id = 0;  ///< Of a request; its answer has the same.
  std::int64_t number = 0;
  std::string key;
  std::string value;
};

inline constexpr std::size_t kMaxStoreKey = 4096;
inline constexpr std::size_t kMaxStoreValue = std::size_t{16} << 20;
inline constexpr std::size_t kStoreLengthBytes = 4;

std::vector<std::byte> to_bytes(const StoreMessage& message);

/// Bytes that follow the first `kStoreLengthBytes`. kCorruptData where no message is that long.
std::size_t store_message_length(std::span<const std::byte> length);

/// Inverse of `to_bytes`, without the length. kCorruptData where `body` is no message.
StoreMessage parse_store_message(std::span<const std::byte> body);

/// Takes the first message off bytes that arrive in pieces; nothing while it is not complete.
std::optional<StoreMessage> take_store_message(std::vector<std::byte>& received);

}  // namespace trireme::transport
