#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/elements.h"

namespace trireme::collectives {

/// A call of an operation: what, and on which memory of this rank. Memory is lent until the work
/// ends.
struct Request {
  Description description;  ///< Without sequence and group size, which are filled in.

  /// The buffer of operations that reduce; the bytes of a broadcast; all ranks' bytes of an
  /// all_gather, this rank's in their place.
  Elements data{{}, Dtype::kU8};

  /// By rank: elements of `data` that are its own (reduce_scatter, all_gather).
  std::vector<Chunk> parts;

  /// By rank: what goes to it and what comes from it (all_to_all, gather, scatter).
  std::vector<std::span<const std::byte>> sends;
  std::vector<std::span<std::byte>> recvs;

  /// Of this rank's buffers, one direction.
  std::size_t bytes() const {
    std::size_t bytes = data.bytes.size();
    for (const auto& part : sends) bytes += part.size();
    return bytes;
  }
};

}  // namespace trireme::collectives
