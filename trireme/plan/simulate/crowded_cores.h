#pragma once

#include <vector>

#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// Ranks that share cores and have more threads than these: while all are at work, none is at full speed. All other ranks work
/// as if they had cores of their own.
///
/// num_ranks   of the world; places of the topology beyond them are empty.
std::vector<topology::SharedCores> crowded_cores(const topology::Topology& topology, int num_ranks);

}  // namespace trireme::simulate
