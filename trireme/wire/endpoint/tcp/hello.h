#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trireme::transport::internal {

/// What a rank is told about its hello.
enum class Welcome : std::uint16_t {
  kHello,  ///< The hello itself.
  kYes,
  kWrongWorld,  ///< Another world id.
  kWrongSize,   ///< Another world size.
  kWrongRank,   ///< No rank that is expected here, or one that is there already.
};

/// First words of a connection, in both directions: who speaks.
///
/// On the wire, 32 bytes, little-endian: magic 4, version 2, welcome 2, world_id 8, rank 4,
/// world_size 4, zeros 8.
struct Hello {
  Welcome welcome = Welcome::kHello;
  std::uint64_t world_id = 0;  ///< Random; differs between worlds that listen on one host.
  std::int32_t rank = 0;
  std::int32_t world_size = 0;

  bool operator==(const Hello&) const = default;
};

using HelloBytes = std::array<std::byte, 32>;

HelloBytes to_bytes(const Hello& hello);

/// Inverse of `to_bytes`. kCorruptData where the bytes are no hello of this version.
Hello parse_hello(const HelloBytes& bytes);

}  // namespace trireme::transport::internal
