#pragma once

#include <chrono>

#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/tuner.h"

namespace trireme::collectives {

/// Measures what messages and reductions cost among the ranks of a group that does nothing else
/// meanwhile: all ranks call this. Messages go round a ring, all ranks at once, so beta is that of
/// links which are busy in both directions.
///
/// ranks_per_host   as eligible.h has it; where it is 1, `local` is as `network`.
/// Returns  the same on all ranks: the slowest one's.
/// Errors   those of the group's operations; kTimeout after its deadline.
/// Cost     about 30 small messages and 3 of 256 KiB per rank and kind of link: below 100 ms where
///          a small message takes below 1 ms and a link has 1 Gb/s.
Costs measure_costs(Group& group, int ranks_per_host = 1);

/// The same for the groups of a world that has just started: all its ranks call this. Where no
/// message would be sent, as all ranks share memory, nothing is measured.
Costs measure_world_costs(transport::Endpoint& endpoint, std::chrono::milliseconds deadline);

}  // namespace trireme::collectives
