#pragma once

#include <string>
#include <vector>

#include "trireme/plan/topology/topology.h"

namespace trireme::measure {

/// What a host is made of.
struct HostParts {
  std::vector<topology::NumaNode> numa_nodes;  ///< In the order of their numbers.
  std::vector<topology::HostDevice> devices;   ///< GPUs and network cards, by name.
};

/// Of this machine, as hwloc finds it: what the control group forbids is left out.
///
/// synthetic   a machine in hwloc's words instead, "pack:2 [numa] core:4", for tests.
/// Errors      kIo where hwloc finds nothing; kInvalidArgument where it does not know the words.
HostParts host_parts(const std::string& synthetic = "");

}  // namespace trireme::measure
