#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {

/// The memory behind a schedule's places. Parts of a place follow each other; no step's range
/// crosses the border between two.
struct ScheduleMemory {
  std::vector<std::span<std::byte>> data;         ///< Lent until the end of `run_schedule`.
  std::vector<std::span<const std::byte>> input;  ///< Likewise, and only read.
};

/// Runs this rank's schedule from start to end: recvs are posted once their memory is free, sends
/// once their data is there, and whatever can be reduced is, the earliest step first, while others
/// still move. Leaves nothing under way, unless it throws: then `Call::drain`.
///
/// reduction   of the reduce steps; its dtype is that of all elements.
/// Errors      those of `Call::wait`; kInvalidArgument where the memory is too small.
/// Cost        the schedule's scratch and partial results, out of the call's scratch.
void run_schedule(Call& call, const CollectiveSchedule& schedule, const ScheduleMemory& memory,
                  const kernels::ElementReduction& reduction);

}  // namespace trireme::collectives
