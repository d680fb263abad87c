#pragma once

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/plan/topology/topology.h"
#include "trireme/session.h"

namespace trireme::session {

/// Where the ranks of a world run, what their hosts are made of, and what the network cards between hosts carry while all
/// send: shared links, named `network of HOST`. The same on all ranks; every rank calls it. As measure::detect_topology.
///
/// Cost   about a second between hosts.
topology::Topology detected_topology(World& world, const measure::DetectOptions& options);

}  // namespace trireme::session
