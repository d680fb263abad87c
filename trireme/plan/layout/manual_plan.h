#pragma once

#include <span>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Ranks 0 .. n - 1 at the positions of the mesh.
std::vector<int> make_placement(const Mesh& mesh, Placement placement);

/// A plan cut by hand: stages between `cuts`, one pipeline rank each, one replica, schedule
/// `simple`. No cut makes one stage.
///
/// cuts     positions in the execution order at which a stage begins, ascending.
/// Errors   those of `check`, which the result has passed.
Plan make_manual_plan(const graph::Graph& graph, const std::string& graph_sha256,
                      std::span<const int> cuts, const BatchLayout& batch);

/// Cuts for `num_stages` stages of about as many nodes each: each cut the allowed one nearest to
/// its place. For plans without a profile.
///
/// Errors   kInvalidArgument where there are not as many allowed cuts.
std::vector<int> even_cuts(const graph::Graph& graph, int num_stages);

/// Gives role `train` this many replicas, its ranks placed anew.
///
/// Errors   kInvalidArgument where they do not divide the lanes.
void set_replicas(Plan& plan, int num_replicas, Placement placement = Placement::kSpread);

}  // namespace trireme::layout
