#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme::collectives {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier
};

enum class ElementType : std::uint8_t { kF32, kF64, kByte };

std::string_view to_text(Operation operation);
std::string_view to_text(ElementType type);

/// What a rank is about to do; the same on all ranks of a group, or it is an error.
struct Description {
  std::int64_t sequence = 0;  ///< Operations of the group before this one.
  Operation operation = Operation::kBarrier;
  ElementType type = ElementType::kByte;
  std::int64_t count = 0;  ///< Elements of the buffer; of an all_gather, of one rank's part.
  std::int32_t root = 0;
  std::uint32_t group_size = 0;

  bool operator==(const Description&) const = default;
};

/// `operation 5: all_reduce of 100 f32`; the root where there is one.
std::string to_text(const Description& description);

inline constexpr std::size_t kDescriptionBytes = 32;

/// The form in which ranks send it to each other.
std::array<std::byte, kDescriptionBytes> to_bytes(const Description& description);

/// Inverse of `to_bytes`. kCorruptData where `bytes` are not of that form.
Description parse_description(std::span<const std::byte> bytes);

}  // namespace trireme::collectives
