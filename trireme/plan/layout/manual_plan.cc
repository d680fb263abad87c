#include "trireme/plan/layout/manual_plan.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "trireme/base/check.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::layout {

std::vector<int> make_placement(const Mesh& mesh, Placement placement) {
  std::vector<int> ranks;
  for (int stage = 0; stage < mesh.pipeline; ++stage) {
    for (int replica = 0; replica < mesh.data; ++replica) {
      ranks.push_back(placement == Placement::kSpread ? stage * mesh.data + replica
                                                      : replica * mesh.pipeline + stage);
    }
  }
  return ranks;
}

Plan make_manual_plan(const graph::Graph& graph, const std::string& graph_sha256,
                      std::span<const int> cuts, const BatchLayout& batch) {
  if (std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) != cuts.end()) {
    throw Error(ErrorKind::kInvalidArgument, "cuts must ascend, each given once");
  }
  Plan plan;
  plan.graph_sha256 = graph_sha256;
  plan.batch = batch;
  std::vector<int> edges(cuts.begin(), cuts.end());
  edges.insert(edges.begin(), 0);
  edges.push_back(static_cast<int>(graph.nodes.size()));
  plan.stages.resize(edges.size() - 1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].begin = edges[s];
    plan.stages[s].end = edges[s + 1];
  }
  Role role;
  role.mesh.pipeline = static_cast<int>(plan.stages.size());
  role.placement = make_placement(role.mesh, Placement::kSpread);
  plan.roles.push_back(std::move(role));
  check(plan, graph_sha256, graph);
  return plan;
}

std::vector<int> even_cuts(const graph::Graph& graph, int num_stages) {
  std::vector<int> allowed;
  const std::vector<bool> may_cut = graph::allowed_cuts(graph);
  for (std::size_t c = 0; c < may_cut.size(); ++c) {
    if (may_cut[c]) allowed.push_back(static_cast<int>(c));
  }
  const int wanted = num_stages - 1;
  const auto num_allowed = static_cast<int>(allowed.size());
  if (num_stages < 1 || wanted > num_allowed) {
    throw Error(ErrorKind::kInvalidArgument,
                std::to_string(num_stages) + " stages need " + std::to_string(wanted) +
                    " cuts and the graph allows " + std::to_string(num_allowed) +
                    "; use from 1 to " + std::to_string(num_allowed + 1) + " stages");
  }
  std::vector<int> cuts;
  auto first = allowed.begin();  // of those that are left; enough must stay for later cuts
  for (int i = 1; i <= wanted; ++i) {
    const auto ideal = static_cast<int>(graph.nodes.size()) * i / num_stages;
    const auto last = allowed.end() - (wanted - i);
    const auto nearest = std::min_element(
        first, last, [ideal](int a, int b) { return std::abs(a - ideal) < std::abs(b - ideal); });
    cuts.push_back(*nearest);
    first = nearest + 1;
  }
  return cuts;
}

void set_replicas(Plan& plan, int num_replicas, Placement placement) {
  const auto role = std::find_if(plan.roles.begin(), plan.roles.end(),
                                 [](const Role& one) { return one.name == "train"; });
  TRIREME_CHECK(role != plan.roles.end(), "a plan without the role that trains");
  if (num_replicas < 1 || plan.batch.lanes % num_replicas != 0) {
    throw Error(ErrorKind::kInvalidArgument,
                std::to_string(num_replicas) + " replicas do not divide " +
                    std::to_string(plan.batch.lanes) +
                    " lanes; each replica runs as many lanes as every other");
  }
  role->mesh.data = num_replicas;
  role->placement = make_placement(role->mesh, placement);
}

}  // namespace trireme::layout
