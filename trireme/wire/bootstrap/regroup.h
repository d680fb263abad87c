#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport {

/// Which ranks of a world go on in its next generation.
struct RegroupOptions {
  std::vector<int> members;  ///< All of these, or it is an error; empty: those that call in time.
  /// For the ranks to call in, from the first call, whose window counts. Over at once where nobody
  /// is left who could still come.
  std::chrono::milliseconds window{10'000};
  int at_least = 1;  ///< Fewer ranks do not go on.

  bool operator==(const RegroupOptions&) const = default;
};

/// A generation that has begun, as one of its ranks sees it.
struct Generation {
  int rank = 0;
  std::vector<int> members;  ///< By rank: the rank in the generation before.
};

namespace internal {

/// What a rank tells the store when it calls in.
struct RegroupCall {
  int world_size = 0;  ///< Of the generation that has ended.
  RegroupOptions options;
};

std::string to_bytes(const RegroupCall& call);

/// Inverse of `to_bytes`. kCorruptData where `bytes` are none.
RegroupCall parse_regroup_call(std::string_view bytes);

/// The ranks of a world that are about to go on, as the store sees it.
struct Gathering {
  std::string generation;  ///< Its name, for messages.
  RegroupCall call;        ///< Of the first; of the others all but the window is the same.
  Deadline deadline;

  /// Throws kInvalidArgument where `rank` wants something else.
  void check_same(int rank, const RegroupCall& other) const;

  /// The members, in order; nothing while others may come.
  ///
  /// called    ranks that have called in. present: those that are there, and might.
  /// Errors    kPeerLost where one that is wanted has ended; kTimeout, naming who is missing.
  std::optional<std::vector<int>> decide(const std::set<int>& called, const std::set<int>& present,
                                         Deadline now) const;
};

/// For who calls in when `generation` has begun without it.
Error late_for_generation(int rank, const std::string& generation, const std::vector<int>& members);

}  // namespace internal
}  // namespace trireme::transport
