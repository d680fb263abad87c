#include "trireme/plan/layout/crossings.h"

#include <algorithm>
#include <unordered_map>

#include "trireme/plan/graph/graph_queries.h"

// Planning calls these for every move of a cut, so they are linear and look up by position.

namespace trireme::layout {
namespace {

/// By value: position of the node that makes it; -1 where none does.
std::vector<int> producer_positions(const graph::Graph& graph) {
  std::vector<int> producers(graph.values.size(), -1);
  for (std::size_t position = 0; position < graph.nodes.size(); ++position) {
    const graph::Node& node = graph.nodes[position];
    for (const graph::ValueId id : node.outputs) {
      if (id < 0 || graph.values[id].producer != node.id) continue;
      producers[id] = static_cast<int>(position);
    }
  }
  return producers;
}

/// Consuming stages, ascending, of the values that they do not make themselves.
std::map<graph::ValueId, std::vector<int>> find_consumers(const graph::Graph& graph,
                                                          const std::vector<int>& producers,
                                                          const layout::Plan& plan) {
  const auto stages = stage_positions(graph, plan);
  std::map<graph::ValueId, std::vector<int>> consumers;
  std::vector<int> last_stage(graph.nodes.size(), -1);  // That has the node, so far.
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    for (const int position : stages[s]) last_stage[position] = s;
    for (const int position : stages[s]) {
      for (const graph::ValueId value : graph::input_values(graph.nodes[position])) {
        if (producers[value] < 0 || last_stage[producers[value]] == s) continue;
        std::vector<int>& users = consumers[value];
        if (users.empty() || users.back() != s) users.push_back(s);
      }
    }
  }
  return consumers;
}

}  // namespace

std::vector<std::vector<int>> stage_positions(const graph::Graph& graph, const layout::Plan& plan) {
  const bool has_copies = std::any_of(plan.stages.begin(), plan.stages.end(),
                                      [](const Stage& stage) { return !stage.copies.empty(); });
  std::unordered_map<graph::NodeId, int> positions;
  if (has_copies) positions = graph::node_positions(graph);
  std::vector<std::vector<int>> result;
  for (const layout::Stage& stage : plan.stages) {
    std::vector<int> own;
    for (graph::NodeId id : stage.copies) own.push_back(positions.at(id));
    std::sort(own.begin(), own.end());
    for (int position = stage.begin; position < stage.end; ++position) own.push_back(position);
    result.push_back(std::move(own));
  }
  return result;
}

std::vector<Crossing> crossings(const graph::Graph& graph, const layout::Plan& plan) {
  const std::vector<int> producers = producer_positions(graph);
  std::vector<Crossing> result;
  for (const auto& [value, users] : find_consumers(graph, producers, plan)) {
    Crossing crossing{value, {}, graph.values[value].requires_grad};
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      if (plan.stages[s].begin <= producers[value] && producers[value] < plan.stages[s].end) {
        crossing.stages.push_back(static_cast<int>(s));
      }
    }
    crossing.stages.insert(crossing.stages.end(), users.begin(), users.end());
    result.push_back(std::move(crossing));
  }
  return result;
}

bool has_any(const std::set<int>& users, const std::vector<int>& stages) {
  return std::ranges::any_of(stages, [&](int stage) { return users.contains(stage); });
}

std::map<graph::ValueId, std::set<int>> stages_of_values(const graph::Graph& graph,
                                                         const layout::Plan& plan) {
  std::map<graph::ValueId, std::set<int>> result;
  const auto positions = stage_positions(graph, plan);
  for (std::size_t s = 0; s < positions.size(); ++s) {
    for (const int position : positions[s]) {
      for (const graph::ValueId value : graph::input_values(graph.nodes[position])) {
        result[value].insert(static_cast<int>(s));
      }
    }
  }
  return result;
}

int next_in_chain(const Crossing& crossing, int stage) {
  const auto here = std::find(crossing.stages.begin(), crossing.stages.end(), stage);
  return here == crossing.stages.end() || here + 1 == crossing.stages.end() ? -1 : *(here + 1);
}

int previous_in_chain(const Crossing& crossing, int stage) {
  const auto here = std::find(crossing.stages.begin(), crossing.stages.end(), stage);
  return here == crossing.stages.end() || here == crossing.stages.begin() ? -1 : *(here - 1);
}

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
    const graph::LossOutput& loss = graph.losses[i];
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

std::vector<std::vector<int>> stage_outputs(const graph::Graph& graph, const Plan& plan) {
  std::vector<std::vector<int>> stages(plan.stages.size());
  for (int i = 0; i < static_cast<int>(graph.outputs.size()); ++i) {
    const graph::ValueId value = graph.outputs[i].value;
    const bool is_field = graph.values[value].source == graph::ValueSource::kInput;
    (is_field ? stages.back() : stages[maker_of(graph, plan, value)]).push_back(i);
  }
  return stages;
}

}  // namespace trireme::layout
