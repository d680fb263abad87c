#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::transport {

/// Appends values to bytes: integers little-endian, texts as a 4-byte length and the bytes.
class ByteWriter {
 public:
  template <std::integral T>
  ByteWriter& integer(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
    return *this;
  }
  ByteWriter& text(std::string_view text);

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote. Throws kCorruptData where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  T integer() {
    std::uint64_t value = 0;
    const std::span<const std::byte> bytes = next(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return static_cast<T>(value);
  }
  std::string text();

  /// kCorruptData unless all was read.
  void finish() const;

 private:
  std::span<const std::byte> next(std::size_t num_bytes);

  std::span<const std::byte> bytes_;
};

}  // namespace trireme::transport
