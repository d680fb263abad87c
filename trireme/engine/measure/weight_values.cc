#include "trireme/engine/measure/weight_values.h"

#include <algorithm>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {

WeightValues weight_values(const graph::Graph& graph) {
  std::vector<bool> is_from_batch(graph.values.size());
  for (const graph::Input& input : graph.inputs) is_from_batch[input.value] = true;
  for (const graph::Node& node : graph.nodes) {
    const std::vector<graph::ValueId> inputs = graph::input_values(node);
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](graph::ValueId id) { return is_from_batch[id]; })) {
      continue;
    }
    for (graph::ValueId id : node.outputs) {
      if (id >= 0) is_from_batch[id] = true;
    }
    for (graph::ValueId id : node.writes) is_from_batch[id] = true;
  }
  WeightValues result(graph.values.size());
  for (std::size_t id = 0; id < result.size(); ++id) {
    result[id] = graph.values[id].requires_grad && !is_from_batch[id];
  }
  return result;
}

}  // namespace trireme::measure
