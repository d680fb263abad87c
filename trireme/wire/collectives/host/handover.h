#pragma once

#include <chrono>
#include <optional>

#include "trireme/wire/collectives/members.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives {

/// The leader (group rank 0) hands memory to all other members.
///
/// Errors   those of LocalPeers::give; where a peer has ended because of another's end, that is the
///          error.
void give(const Members& members, Use use, const transport::SharedMemory& memory);

/// What the leader has handed over; nothing where it has not within `time`. Errors likewise.
std::optional<transport::SharedMemory> take(const Members& members, Use use,
                                            std::chrono::milliseconds time);

}  // namespace trireme::collectives
