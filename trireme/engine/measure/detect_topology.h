#pragma once

#include <cstdint>

#include "trireme/engine/measure/busy_ranks.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::measure {

struct DetectOptions {
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: an equal part of its host's.
};

/// Where the ranks run: each one's host, the cores that it may use and its memory. The same on all
/// ranks; hosts in the order of their first ranks. Has passed topology::check.
///
/// Hosts are told apart by name. Blocking; all ranks call it.
topology::Topology detect_topology(const BusyRanks& ranks, const DetectOptions& options);

}  // namespace trireme::measure
