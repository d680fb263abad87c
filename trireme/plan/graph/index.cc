#include "trireme/plan/graph/index.h"

namespace trireme::graph {
namespace {

void collect(const Argument& argument, std::vector<ValueId>& values) {
  if (const auto* tensor = std::get_if<ValueRef>(&argument.content)) {
    values.push_back(tensor->value);
  } else if (const auto* list = std::get_if<ArgumentList>(&argument.content)) {
    for (const Argument& item : *list) collect(item, values);
  }
}

}  // namespace

std::vector<ValueId> input_values(const Node& node) {
  std::vector<ValueId> values;
  values.reserve(node.inputs.size());
  for (const Argument& argument : node.inputs) collect(argument, values);
  return values;
}

bool is_outside(ValueSource source) {
  return source == ValueSource::kInput || source == ValueSource::kStepScalar ||
         source == ValueSource::kConstant;
}

std::unordered_map<NodeId, int> node_positions(const Graph& graph) {
  std::unordered_map<NodeId, int> positions;
  positions.reserve(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    positions.emplace(graph.nodes[i].id, static_cast<int>(i));
  }
  return positions;
}

std::unordered_map<int, StorageHistory> storage_histories(const Graph& graph) {
  std::unordered_map<int, StorageHistory> histories;
  const auto storage_of = [&](ValueId id) -> StorageHistory& {
    return histories[graph.values[id].storage_id];
  };
  const auto produce = [&](ValueId id, int position) {
    StorageHistory& history = storage_of(id);
    if (history.first_production != StorageHistory::kNever) return;
    history.first_production = position;
    history.first_value = id;
  };
  for (const Input& input : graph.inputs) produce(input.value, StorageHistory::kBatch);
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    for (const ValueId id : node.outputs) {
      if (id >= 0 && graph.values[id].producer == node.id) produce(id, position);
    }
    for (const ValueId id : node.writes) storage_of(id).writes.push_back(position);
    if (node.op.starts_with("aten::as_strided")) {
      for (const ValueId id : input_values(node)) storage_of(id).strided.push_back(position);
    }
  }
  return histories;
}

}  // namespace trireme::graph
