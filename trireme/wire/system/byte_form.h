#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::transport {

template <std::integral T>
constexpr std::array<std::byte, sizeof(T)> little_endian(T value) {
  std::array<std::byte, sizeof(T)> bytes{};
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  return bytes;
}

/// Writes integers, little-endian, into a form of N bytes; what is not written is zero. Allocates
/// nothing.
template <std::size_t N>
class FixedWriter {
 public:
  /// Behind the last one; there must be room.
  template <std::integral T>
  FixedWriter& integer(T value) {
    return bytes(little_endian(value));
  }
  FixedWriter& bytes(std::span<const std::byte> piece) {
    TRIREME_CHECK(piece.size() <= N - num_written_, "a form has no room for a field");
    std::copy(piece.begin(), piece.end(), bytes_.begin() + num_written_);
    num_written_ += piece.size();
    return *this;
  }

  const std::array<std::byte, N>& written() const { return bytes_; }

 private:
  std::array<std::byte, N> bytes_{};
  std::size_t num_written_ = 0;
};

/// Appends values to bytes: integers little-endian, texts as a 4-byte length and the bytes.
class ByteWriter {
 public:
  template <std::integral T>
  ByteWriter& integer(T value) {
    const auto bytes = little_endian(value);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
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

/// `error` with its causes as part of its message: what the other ranks will read, so that all of
/// them print the same.
Error flattened(const Error& error);

/// An error as bytes for another rank: kind, message, context; at most about 64 KiB, longer texts
/// are cut. Causes are kept only if `flattened`.
std::vector<std::byte> error_to_bytes(const Error& error);

/// Inverse of `error_to_bytes`. kCorruptData where `bytes` are not of that form.
Error error_from_bytes(std::span<const std::byte> bytes);

}  // namespace trireme::transport
