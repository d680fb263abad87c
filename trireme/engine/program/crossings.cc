#include "trireme/engine/program/crossings.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "trireme/plan/graph/index.h"

namespace trireme::program {
namespace {

std::unordered_map<graph::NodeId, int> position_of_id(const graph::Graph& graph) {
  std::unordered_map<graph::NodeId, int> positions;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    positions[graph.nodes[i].id] = static_cast<int>(i);
  }
  return positions;
}

bool is_made_by_node(const graph::Graph& graph, graph::ValueId value) {
  return graph.values[value].source == graph::ValueSource::kNode;
}

}  // namespace

std::vector<std::vector<int>> stage_positions(const graph::Graph& graph, const layout::Plan& plan) {
  const auto positions = position_of_id(graph);
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
  const auto positions = position_of_id(graph);
  const auto stages = stage_positions(graph, plan);
  std::map<graph::ValueId, std::set<int>> consumers;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::set<int> here(stages[s].begin(), stages[s].end());
    for (int position : stages[s]) {
      for (graph::ValueId value : graph::input_values(graph.nodes[position])) {
        if (!is_made_by_node(graph, value)) continue;
        if (here.contains(positions.at(graph.values[value].producer))) continue;
        consumers[value].insert(static_cast<int>(s));
      }
    }
  }
  std::vector<Crossing> result;
  for (const auto& [value, users] : consumers) {
    const int producer = positions.at(graph.values[value].producer);
    Crossing crossing{value, {}, graph.values[value].requires_grad};
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      if (plan.stages[s].begin <= producer && producer < plan.stages[s].end) {
        crossing.stages.push_back(static_cast<int>(s));
      }
    }
    crossing.stages.insert(crossing.stages.end(), users.begin(), users.end());
    result.push_back(std::move(crossing));
  }
  return result;
}

std::vector<int> ancestors(const graph::Graph& graph, std::span<const graph::ValueId> values) {
  std::set<int> storages;  // Whatever touches memory of a needed value counts as needed.
  for (graph::ValueId value : values) storages.insert(graph.values[value].storage_id);
  std::vector<int> result;
  for (int position = static_cast<int>(graph.nodes.size()) - 1; position >= 0; --position) {
    const graph::Node& node = graph.nodes[position];
    const auto is_needed = [&](graph::ValueId value) {
      return value >= 0 && storages.contains(graph.values[value].storage_id);
    };
    if (!std::any_of(node.outputs.begin(), node.outputs.end(), is_needed) &&
        !std::any_of(node.writes.begin(), node.writes.end(), is_needed)) {
      continue;
    }
    result.push_back(position);
    for (graph::ValueId value : graph::input_values(node)) {
      storages.insert(graph.values[value].storage_id);
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace trireme::program
