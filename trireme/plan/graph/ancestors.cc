#include "trireme/plan/graph/ancestors.h"

#include <algorithm>
#include <set>

#include "trireme/plan/graph/index.h"

namespace trireme::graph {

std::vector<int> ancestors(const Graph& graph, std::span<const ValueId> values) {
  std::set<int> storages;  // Whatever touches memory of a needed value counts as needed.
  for (ValueId value : values) storages.insert(graph.values[value].storage_id);
  std::vector<int> result;
  for (int position = static_cast<int>(graph.nodes.size()) - 1; position >= 0; --position) {
    const Node& node = graph.nodes[position];
    const auto is_needed = [&](ValueId value) {
      return value >= 0 && storages.contains(graph.values[value].storage_id);
    };
    if (!std::any_of(node.outputs.begin(), node.outputs.end(), is_needed) &&
        !std::any_of(node.writes.begin(), node.writes.end(), is_needed)) {
      continue;
    }
    result.push_back(position);
    for (ValueId value : input_values(node)) {
      storages.insert(graph.values[value].storage_id);
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace trireme::graph
