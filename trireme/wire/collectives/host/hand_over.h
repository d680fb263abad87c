#pragma once

#include <chrono>
#include <optional>

#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// The leader (group rank 0) hands memory to all other members, and does not wait for them.
///
/// Errors   those of LocalPeers::give.
inline void give(const Members& members, Use use, const transport::SharedMemory& memory) {
  for (int i = 1; i < members.size(); ++i) {
    members.endpoint.local_peers().give(members.ranks[i], members.tag(use), memory);
  }
}

/// What the leader has given for that use; nothing where none has come within `time`.
///
/// Errors   those of LocalPeers::take.
inline std::optional<transport::SharedMemory> take(const Members& members, Use use,
                                                   std::chrono::milliseconds time) {
  return members.endpoint.local_peers().take(members.ranks[0], members.tag(use), time);
}

}  // namespace trireme::collectives
