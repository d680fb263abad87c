#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);

/// SHA-256 of bytes that arrive in pieces. Caller-synchronised; used once.
///
/// Errors   kUnavailable where the cryptographic library refuses to start.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);

  /// The digest of all that was added, as 64 hexadecimal digits. Call it last.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Sha256Digest = std::array<std::byte, 32>;

/// HMAC-SHA256 (RFC 2104) of `message` under `key`, which may have any length.
///
/// Errors   kUnavailable where the cryptographic library refuses.
Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

/// Whether both are the same, in a time that does not depend on where they differ.
bool is_same_digest(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b);

/// Whether `text` has the form of a digest: 64 lower-case hexadecimal digits.
bool is_sha256(std::string_view text);

}  // namespace trireme
