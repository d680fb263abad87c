#pragma once

#include <filesystem>

#include "trireme/plan/topology/topology.h"

namespace trireme::topology {

/// Whether hosts have the same names, and ranks the same hosts and threads: what one says of them the other may too.
bool are_same_places(const Topology& a, const Topology& b);

/// `found`, with the speeds of ranks that `before` has, and its shared links of other names: switches and racks that were added
/// by hand. As it is where the places differ.
Topology with_speeds_and_own_links_of(const Topology& before, Topology found);

/// `found`, with the shared links of `before`, its NUMA nodes and devices. As it is where the places differ.
Topology with_links_and_parts_of(const Topology& before, Topology found);

/// The topology that a file has; an empty one where there is no file. Errors: those of load.
Topology load_if_any(const std::filesystem::path& path);

}  // namespace trireme::topology
