#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::layout::testing {

/// One node of a chain. Times for a microbatch of 1.
struct ChainNode {
  double forward_us = 1;
  double input_us = 1;
  double weight_us = 1;
  std::int64_t width = 1;     ///< Elements of its output, per sample.
  std::int64_t elements = 1;  ///< Of its parameter.
};

/// A graph and what it costs; all that costs nothing is 0: links, copies, updates.
struct Model {
  graph::Graph graph;
  profile::Profile profile;
};

/// x -> node 0 -> node 1 -> ... -> loss: each node has a parameter of its own; all but the
/// first save their input. The loss is one more node, which costs nothing. A cut may fall anywhere.
Model make_chain(const std::vector<ChainNode>& nodes);

/// A profile of `graph` in which nothing costs anything and nothing is saved: one cost per node.
profile::Profile make_free_profile(const graph::Graph& graph);

/// `num_ranks` on one machine, one core each, or all on `num_shared_cores` if that is not 0.
topology::Topology make_topology(int num_ranks, int num_shared_cores = 0);

/// A plan cut by hand, with microbatches of 1 and as many lanes as replicas.
struct PlanShape {
  std::vector<int> cuts;
  int num_microbatches = 1;  ///< Per replica.
  int replicas = 1;
  std::string schedule = "simple";
};
Plan make_plan(const graph::Graph& graph, const PlanShape& shape);

}  // namespace trireme::layout::testing
