#pragma once

#include <string>

#include "trireme/plan/topology/topology.h"

namespace trireme::topology {

/// The topology for people, a line per host and per rank:
///
///     host 0: a, 2 cores, 8.0 GiB
///       rank 0: cores 0, 4.0 GiB
///
/// topology   one that passes `check`.
std::string show(const Topology& topology);

}  // namespace trireme::topology
