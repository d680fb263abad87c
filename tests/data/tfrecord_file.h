#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace trireme::data {

/// The value of a feature: a bytes, int64 or float list.
using TfValue =
    std::variant<std::vector<std::string>, std::vector<std::int64_t>, std::vector<float>>;
using TfFeatures = std::vector<std::pair<std::string, TfValue>>;

/// Bit by bit, from the polynomial.
inline std::uint32_t tf_masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <typename Number>
std::string tf_number(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

inline std::string tf_varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

/// A part of a message: its number, and its bytes with their length.
inline std::string tf_part(int number, std::string_view bytes) {
  return tf_varint(static_cast<std::uint64_t>(number) << 3 | 2) + tf_varint(bytes.size()) +
         std::string(bytes);
}

inline std::string tf_feature(const TfValue& value) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::string list;
    for (const std::string& text : *texts) list += tf_part(1, text);
    return tf_part(1, list);
  }
  std::string numbers;
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t number : *ints)
      numbers += tf_varint(static_cast<std::uint64_t>(number));
    return tf_part(3, tf_part(1, numbers));
  }
  for (const float number : std::get<std::vector<float>>(value)) numbers += tf_number(number);
  return tf_part(2, tf_part(1, numbers));
}

inline std::string tf_example(const TfFeatures& features) {
  std::string entries;
  for (const auto& [name, value] : features) {
    entries += tf_part(1, tf_part(1, name) + tf_part(2, tf_feature(value)));
  }
  return tf_part(1, entries);
}

/// A message as a record.
inline std::string tf_record(std::string_view message) {
  const std::string length = tf_number(static_cast<std::uint64_t>(message.size()));
  return length + tf_number(tf_masked_crc(length)) + std::string(message) +
         tf_number(tf_masked_crc(message));
}

}  // namespace trireme::data
