#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/algorithm.h"
#include "trireme/wire/endpoint/messages.h"

namespace trireme::collectives {

enum class Collective : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
};

std::string_view to_text(Collective operation);

/// Whether one group rank is apart from the others.
bool has_root(Collective operation);

/// Whether it adds up, or combines otherwise, what ranks give.
bool reduces(Collective operation);

/// What a rank is about to do; the same on all ranks of a group, or it is an error.
struct Description {
  std::int64_t sequence = 0;  ///< Operations of the group before this one.
  Collective operation = Collective::kBarrier;
  Dtype dtype = Dtype::kU8;
  kernels::ReduceOp reduce = kernels::ReduceOp::kSum;  ///< Of operations that reduce.
  /// Elements of the buffer; of an all_to_all of equal parts, of one; 0 where they are of any size.
  std::int64_t count = 0;
  /// Of those that have one; of those with parts, not 0 where those are of several sizes, and then
  /// another number for other sizes. Of an all_reduce: reducers of the group.
  std::int32_t root = 0;
  std::uint32_t group_size = 0;
  Algorithm algorithm = Algorithm::kTwoHop;
  Order order = Order::kCanonical;
  std::optional<std::uint64_t> hash = {};  ///< Of the replicas' state, for comparison.

  bool operator==(const Description&) const = default;
};

/// `operation 5: all_reduce of 100 f32 among 4 ranks`; with what is not the default: `operation 5:
/// reduce of 100 f32 by max with root 1 by ring in any order among 4 ranks`.
std::string to_text(const Description& description);

/// `0x` and 16 digits.
std::string hash_text(std::uint64_t hash);

/// For an error: two ranks and what they are about to do.
std::string difference_text(int rank, const Description& description, int other_rank,
                            const Description& other);

inline constexpr std::size_t kDescriptionBytes = sizeof(transport::Envelope);

/// The form in which ranks send it to each other, with every message. scale: of a scaled sum, of
/// this rank's elements; the only part that may differ between ranks.
transport::Envelope to_bytes(const Description& description, double scale = 1);

/// Inverse of `to_bytes`. kCorruptData where `bytes` are not of that form.
Description parse_description(std::span<const std::byte> bytes);

/// Of two such forms: whether they say the same but for the scale.
bool is_same_call(std::span<const std::byte> a, std::span<const std::byte> b);

/// The scale in such a form.
double scale_in(std::span<const std::byte> bytes);

}  // namespace trireme::collectives
