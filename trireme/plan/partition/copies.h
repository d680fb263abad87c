#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// Sets `Stage::copies`: a value that crosses a cut, needs no gradient and is made of the batch and
/// constants alone by nodes that may be copied (layout::check) is made again by the consuming
/// stage, with all nodes before it, where their forwards take less than sending it.
///
/// planned, profile   that `plan` counts in. `plan` has its stages, without copies.
/// link_kind          of the links between stages.
void add_stage_copies(const graph::Graph& planned, const profile::Profile& profile,
                      const std::string& link_kind, layout::Plan& plan);

/// Whether graph::copy_to_consumers accepts the nodes.
bool can_copy(const graph::Graph& recorded, const std::vector<graph::NodeId>& nodes);

/// Groups of nodes that may pay as `Plan::copied_nodes`: all that a value with a gradient is made
/// by, where that is cheap, has a parameter in it, and several nodes use the value with an allowed
/// cut between them. The largest values first; a few at most.
///
/// Whether one pays depends on the cuts: whoever plans tries.
std::vector<std::vector<graph::NodeId>> copy_candidates(const graph::Graph& recorded,
                                                        const profile::Profile& profile);

}  // namespace trireme::partition
