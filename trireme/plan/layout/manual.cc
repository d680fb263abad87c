#include "trireme/plan/layout/manual.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/plan/layout/check.h"

namespace trireme::layout {

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
  role.placement.resize(plan.stages.size());
  std::iota(role.placement.begin(), role.placement.end(), 0);
  plan.roles.push_back(std::move(role));
  check(plan, graph_sha256, graph);
  return plan;
}

int stage_of(const Plan& plan, int position) {
  const auto found =
      std::upper_bound(plan.stages.begin(), plan.stages.end(), position,
                       [](int wanted, const Stage& stage) { return wanted < stage.end; });
  if (position < 0 || found == plan.stages.end() || position < found->begin) {
    throw Error(ErrorKind::kInvalidArgument,
                "no stage of the plan runs the node at position " + std::to_string(position));
  }
  return static_cast<int>(found - plan.stages.begin());
}

const Role& train_role(const Plan& plan) {
  for (const Role& role : plan.roles) {
    if (role.name == "train") return role;
  }
  throw Error(ErrorKind::kInvalidArgument, "the plan has no role 'train'; add one");
}

}  // namespace trireme::layout
