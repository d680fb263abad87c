#include "trireme/plan/layout/stage_losses.h"

#include <algorithm>

#include "trireme/plan/layout/manual.h"

namespace trireme::layout {
namespace {

/// The stage whose range makes the value.
int maker_of(const graph::Graph& graph, const Plan& plan, graph::ValueId value) {
  const auto producer =
      std::ranges::find(graph.nodes, graph.values[value].producer, &graph::Node::id);
  return stage_of(plan, static_cast<int>(producer - graph.nodes.begin()));
}

}  // namespace

std::vector<StageLosses> stage_losses(const graph::Graph& graph, const Plan& plan,
                                      const std::vector<Crossing>& crossings) {
  std::vector<StageLosses> stages(plan.stages.size());
  for (int i = 0; i < static_cast<int>(graph.losses.size()); ++i) {
    const graph::Loss& loss = graph.losses[i];
    const int maker = maker_of(graph, plan, loss.value);
    const auto crossing = std::ranges::find(crossings, loss.value, &Crossing::value);
    const int last = crossing == crossings.end() ? maker : crossing->stages.back();
    stages[maker].made.push_back(i);
    stages[last].seeded.push_back(i);
    if (!loss.weight) continue;
    stages[maker].weighed.push_back(i);
    if (last != maker && loss.coefficient != 0) stages[last].weighed.push_back(i);
  }
  return stages;
}

}  // namespace trireme::layout
