#pragma once

#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/shared_links.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// What channels and groups of a step load the topology's shared links with, which are two of SharedLinks each: from
/// their ranks to others, then to them. Empty lists where a channel or group passes none.
struct LinkLoads {
  std::vector<double> bytes_per_us;  ///< By link.

  /// For each byte of Price::bytes.
  std::vector<std::vector<SharedLinks::Load>> channels, groups;
};

/// Of a sum over hosts with several ranks each, as many on all, one rank of a host sends to one of another: the parts of
/// a host are joined before (reduce_us).
///
/// Cost   links x (channels + ranks of all groups).
LinkLoads link_loads(const schedule::StepProgram& program, const topology::Topology& topology);

}  // namespace trireme::simulate
