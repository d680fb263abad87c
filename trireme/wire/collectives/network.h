#pragma once

#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/collectives/schedule/cache.h"

/// The operations of a group over its endpoint. Each runs from start to end on the group's thread
/// and leaves nothing under way, unless it throws: then `Call::drain`.
namespace trireme::collectives {

/// What the call's description says, on the memory of `request`, whose own description is not looked
/// at: the call's is filled in. An operation of no elements at all, other than one whose parts are
/// of any size, waits for all ranks, as a barrier does.
///
///     reduce                      the data of all but the root is left
///     reduce_scatter, all_gather  parts: one per group rank, the same on all, no overlap, some may
///                                 be empty; what is in none is left
///     all_to_all, gather,         empty parts are left out on both sides; kInvalidArgument on both
///     scatter                     ranks where a part is not as large as its receiver expects
///
/// schedules   of this rank in this group.
/// Errors      kInvalidArgument, before anything is sent, where the algorithm is not eligible or the
///             memory contradicts the description; those of `Call::wait`.
/// Cost        docs/algorithms.md.
void run_over_network(Call& call, const Request& request, ScheduleCache& schedules);

/// Returns once all ranks have called it, whatever the call's description says.
void wait_for_all(Call& call, ScheduleCache& schedules);

}  // namespace trireme::collectives
