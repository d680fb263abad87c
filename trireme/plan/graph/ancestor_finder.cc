#include "trireme/plan/graph/ancestor_finder.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {

AncestorFinder::AncestorFinder(const Graph& graph) : graph_(graph) {
  for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
    const Node& node = graph.nodes[p];
    for (const auto* values : {&node.outputs, &node.writes}) {
      for (const ValueId id : *values) {
        if (id < 0) continue;
        std::vector<int>& positions = touching_[graph.values[id].storage_id];
        if (positions.empty() || positions.back() != p) positions.push_back(p);
      }
    }
  }
}

std::optional<std::vector<int>> AncestorFinder::find(ValueId value, std::size_t most) const {
  std::unordered_set<int> storages;
  std::set<int> open;  // Positions; the last first, as memory is needed only by what comes later.
  int before = static_cast<int>(graph_.nodes.size());
  const auto add = [&](ValueId id) {
    const int storage = graph_.values[id].storage_id;
    const auto found = touching_.find(storage);
    if (!storages.insert(storage).second || found == touching_.end()) return;
    const std::vector<int>& positions = found->second;
    open.insert(positions.begin(), std::ranges::lower_bound(positions, before));
  };
  add(value);
  std::vector<int> result;
  while (!open.empty()) {
    if (result.size() == most) return std::nullopt;
    before = *open.rbegin();
    open.erase(before);
    result.push_back(before);
    for (const ValueId id : input_values(graph_.nodes[before])) add(id);
  }
  std::ranges::reverse(result);
  return result;
}

}  // namespace trireme::graph
