#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::transport {

/// What clients and server of the store say to each other.
enum class StoreVerb : std::uint8_t {
  kHello,    ///< client: number = its rank, or kObserver. First, and only once.
  kSet,      ///< client: key, value
  kGet,      ///< client: key. Answered when it is set.
  kAdd,      ///< client: key, number. Answered with the sum, as text.
  kCheck,    ///< client: nothing. Answered at once.
  kSetOnce,  ///< client: key, value. Answered with the value that the key has then.
  kSetMany,  ///< client: value = pack of key, value, key, value ...
  kGetMany,  ///< client: value = pack of keys. Answered when all are set, with a pack of values.
  kMissing,  ///< client: value = pack of keys. Answered with a pack of those that are not set.
  kFail,     ///< client: value = an error (byte_form.h) that ends the start of all
  kRegroup,  ///< client: key = the next generation, value = a RegroupCall (regroup.h). Answered
             ///< with a pack of its members, by new rank, when it begins.
  kGoodbye,  ///< client: it ends in good order
  kValue,    ///< server: done; value
  kError,    ///< server: failed; value = an error (byte_form.h)
  kRemove,   ///< client: key. Answered with `1`, or `0` where it was not set.
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

/// In place of a rank: who only looks. Its end, however it comes, is nobody's loss.
inline constexpr int kObserver = -1;

inline constexpr std::size_t kMaxStoreKey = 4096;
inline constexpr std::size_t kMaxStoreValue = std::size_t{16} << 20;
inline constexpr std::size_t kMaxStoreBytes = std::size_t{128} << 20;  ///< Of all keys and values.
inline constexpr std::size_t kMaxStoreBatch = std::size_t{1} << 17;    ///< Texts in a pack.
inline constexpr std::size_t kStoreLengthBytes = 4;

std::vector<std::byte> to_bytes(const StoreMessage& message);

/// Several texts as one value: 4 bytes their number, each with 4 bytes length. kInvalidArgument
/// where they are more than kMaxStoreBatch or have more than kMaxStoreValue bytes.
std::string pack(std::span<const std::string> texts);

/// Inverse of `pack`; kCorruptData where it is none.
std::vector<std::string> unpack(std::string_view packed);

/// Bytes that follow the first `kStoreLengthBytes`. kCorruptData where no message is that long.
std::size_t store_message_length(std::span<const std::byte> length);

/// Inverse of `to_bytes`, without the length. kCorruptData where `body` is no message.
StoreMessage parse_store_message(std::span<const std::byte> body);

/// Takes the first message off bytes that arrive in pieces; nothing while it is not complete.
std::optional<StoreMessage> take_store_message(std::vector<std::byte>& received);

}  // namespace trireme::transport
