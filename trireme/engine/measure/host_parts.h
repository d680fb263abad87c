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

/// Raises the number of cores to the last of `parts`: numbers of cores may have holes.
void add_parts(HostParts parts, topology::Host& host);

/// Whether a device of PCI computes: 3D controllers and accelerators; of VGA controllers those of NVIDIA, AMD and Intel, as
/// others are for the console alone. pci_class: with its subclass, 0x0302.
bool is_gpu(unsigned pci_class, unsigned vendor);

}  // namespace trireme::measure
