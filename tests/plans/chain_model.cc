#include "tests/plans/chain_model.h"

#include <numeric>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout::testing {

using graph::ValueId;
using graph::testing::GraphBuilder;

Model make_chain(const std::vector<ChainNode>& nodes) {
  GraphBuilder b;
  ValueId h = b.input("x", {1});
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const ValueId weight = b.parameter("p" + std::to_string(n), {nodes[n].elements});
    h = b.node("linear", {h, weight}, b.batch({nodes[n].width}));
  }
  b.loss(h);
  Model model{b.graph(), make_free_profile(b.graph())};
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    profile::NodeCost& cost = model.profile.costs[n];
    cost.forward_us = nodes[n].forward_us;
    cost.input_us = nodes[n].input_us;
    cost.weight_us = nodes[n].weight_us;
    if (n > 0) cost.saved_inputs = {0};
  }
  return model;
}

profile::Profile make_free_profile(const graph::Graph& graph) {
  profile::Profile profile;
  profile.graph_sha256 = graph::graph_sha256(graph);
  profile.microbatch = 1;
  profile.costs.resize(graph.nodes.size());
  profile.cost_of.resize(graph.nodes.size());
  std::iota(profile.cost_of.begin(), profile.cost_of.end(), 0);
  profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}}},
                   {profile::LinkKind::kNetwork, {{0, 0, 0}}}};
  return profile;
}

topology::Topology make_topology(int num_ranks, int num_shared_cores) {
  constexpr std::int64_t kMemory = std::int64_t{1} << 40;
  const bool is_shared = num_shared_cores > 0;
  topology::Topology topology;
  topology.hosts = {{"a", is_shared ? num_shared_cores : num_ranks, kMemory}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    topology::RankPlace place{0, {rank}, kMemory};
    if (is_shared) {
      place.cores.resize(num_shared_cores);
      std::iota(place.cores.begin(), place.cores.end(), 0);
    }
    topology.ranks.push_back(std::move(place));
  }
  return topology;
}

Plan make_plan(const graph::Graph& graph, const PlanShape& shape) {
  const std::int64_t batch = static_cast<std::int64_t>(shape.num_microbatches) * shape.replicas;
  Plan plan =
      make_manual_plan(graph, graph::graph_sha256(graph), shape.cuts, {batch, 1, shape.replicas});
  plan.schedule.name = shape.schedule;
  Role& role = plan.roles[0];
  role.mesh.data = shape.replicas;
  role.placement.resize(static_cast<std::size_t>(role.mesh.num_places()));
  std::iota(role.placement.begin(), role.placement.end(), 0);
  return plan;
}

}  // namespace trireme::layout::testing
