#include "trireme/plan/layout/crossings.h"

#include <algorithm>
#include <map>
#include <set>

#include "trireme/plan/graph/index.h"

namespace trireme::layout {
namespace {

bool is_made_by_node(const graph::Graph& graph, graph::ValueId value) {
  return graph.values[value].source == graph::ValueSource::kNode;
}

}  // namespace

std::vector<std::vector<int>> stage_positions(const graph::Graph& graph, const layout::Plan& plan) {
  const auto positions = graph::node_positions(graph);
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
  const auto positions = graph::node_positions(graph);
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

}  // namespace trireme::layout
