#include "trireme/plan/layout/plan.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/node_order.h"

namespace trireme::layout {

int Role::num_ranks() const {
  return static_cast<int>(std::unordered_set<int>(placement.begin(), placement.end()).size());
}

std::vector<int> Role::ranks_at(int position) const {
  const auto first = placement.begin() + std::ptrdiff_t{position} * mesh.data;
  std::vector<int> ranks;
  std::unique_copy(first, first + mesh.data, std::back_inserter(ranks));
  return ranks;
}

int Role::replicas_per_rank(int position) const {
  const auto first = placement.begin() + std::ptrdiff_t{position} * mesh.data;
  return static_cast<int>(
      std::find_if(first, first + mesh.data, [&](int rank) { return rank != *first; }) - first);
}

std::string_view balance_name(Balance balance) {
  switch (balance) {
    case Balance::kUniform:
      return "uniform";
    case Balance::kParameters:
      return "parameters";
    case Balance::kTree:
      return "tree";
    case Balance::kSearch:
      break;
  }
  return "search";
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

int position_of(const Plan& plan, int stage) {
  return plan.stages[static_cast<std::size_t>(stage)].position.value_or(stage);
}

std::vector<int> stages_at(const Plan& plan, int position) {
  std::vector<int> stages;
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    if (position_of(plan, s) == position) stages.push_back(s);
  }
  return stages;
}

int rank_of(const Plan& plan, int stage, int replica) {
  const Role& role = train_role(plan);
  const int place = position_of(plan, stage) * role.mesh.data + replica;
  return role.placement[place];
}

int num_microbatches_of_replica(const Plan& plan) {
  return static_cast<int>(plan.batch.num_microbatches() / train_role(plan).mesh.data);
}

graph::Graph planned_graph(const graph::Graph& recorded, const Plan& plan) {
  return planned_graph(recorded, plan.node_order, plan.copied_nodes);
}

graph::Graph planned_graph(const graph::Graph& recorded, std::span<const graph::NodeId> node_order,
                           std::span<const graph::NodeId> copied_nodes) {
  if (node_order.empty()) {
    return copied_nodes.empty() ? recorded : graph::copy_to_consumers(recorded, copied_nodes);
  }
  graph::Graph in_order = graph::reordered(recorded, node_order, copied_nodes);
  return copied_nodes.empty() ? std::move(in_order)
                              : graph::copy_to_consumers(in_order, copied_nodes);
}

std::int64_t largest_peak_bytes(const PeakBytes& peak_bytes) {
  std::int64_t largest = 0;
  for (const auto& rank : peak_bytes) {
    std::int64_t sum = 0;
    for (const auto& [kind, bytes] : rank) {
      if (__builtin_add_overflow(sum, bytes, &sum)) sum = std::numeric_limits<std::int64_t>::max();
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace trireme::layout
