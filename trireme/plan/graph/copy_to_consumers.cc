#include "trireme/plan/graph/copy_to_consumers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

[[noreturn]] void refuse(const Node& node, const std::string& reason) {
  throw Error(ErrorKind::kInvalidArgument,
              "cannot copy " + internal::describe(node) + " to its consumers: " + reason);
}

/// Refuses nodes whose result depends on when they run, or that others change.
class Eligibility {
 public:
  explicit Eligibility(const Graph& graph) : graph_(graph), histories_(storage_histories(graph)) {
    for (const LossOutput& loss : graph.losses) {
      results_.insert(loss.value);
      if (loss.weight) results_.insert(*loss.weight);
    }
    for (const Buffer& buffer : graph.buffers) {
      if (buffer.policy == BufferPolicy::kReadOnly) continue;
      written_.emplace(graph.values[buffer.value].storage_id, "buffer '" + buffer.name + "'");
    }
    for (const int index : written_parameters(graph)) {
      const Parameter& parameter = graph.parameters[index];
      written_.emplace(graph.values[parameter.value].storage_id,
                       "parameter '" + parameter.name + "'");
    }
  }

  void check(const Node& node, int position) const {
    if (!node.writes.empty()) refuse(node, "it writes in place");
    if (node.copy_of != -1) refuse(node, "it is a copy already");
    std::vector<ValueId> values = input_values(node);
    for (const ValueId id : values) {
      const auto written = written_.find(graph_.values[id].storage_id);
      if (written == written_.end()) continue;
      refuse(node, "it reads the " + written->second + ", which is written");
    }
    for (const ValueId id : node.outputs) {
      if (results_.contains(id)) refuse(node, "it computes a loss or a weight");
      if (id >= 0) values.push_back(id);
    }
    for (const ValueId id : values) {
      const auto history = histories_.find(graph_.values[id].storage_id);
      if (history == histories_.end() || history->second.writes.empty()) continue;
      const int last = history->second.writes.back();
      if (last <= position) continue;
      refuse(node, "the memory of its value " + std::to_string(id) + " is written later by " +
                       internal::describe(graph_.nodes[last]));
    }
  }

 private:
  const Graph& graph_;
  std::unordered_map<int, StorageHistory> histories_;
  std::unordered_set<ValueId> results_;
  std::unordered_map<int, std::string> written_;  ///< By storage, buffers and parameters.
};

/// Values of one run of copied nodes, by the value that was recorded.
using ValueMap = std::unordered_map<ValueId, ValueId>;

Argument renamed(const Argument& argument, const ValueMap& names) {
  if (const auto* tensor = std::get_if<ValueRef>(&argument.content)) {
    const auto name = names.find(tensor->value);
    return name == names.end() ? argument : Argument{ValueRef{name->second}};
  }
  const auto* list = std::get_if<ArgumentList>(&argument.content);
  if (!list) return argument;
  ArgumentList items;
  for (const Argument& item : *list) items.push_back(renamed(item, names));
  return {std::move(items)};
}

class Copier {
 public:
  Copier(const Graph& graph, std::span<const NodeId> nodes) : graph_(graph), result_(graph) {
    positions_ = node_positions(graph);
    const Eligibility eligibility(graph);
    for (const NodeId id : nodes) {
      const auto position = positions_.find(id);
      if (position == positions_.end()) {
        throw Error(ErrorKind::kInvalidArgument,
                    "cannot copy node " + std::to_string(id) + ": the graph has no such node");
      }
      eligibility.check(graph.nodes[position->second], position->second);
      copied_.insert(position->second);
    }
    for (const Node& node : graph.nodes) next_node_ = std::max(next_node_, node.id + 1);
    for (const Value& value : graph.values) {
      next_storage_ = std::max(next_storage_, value.storage_id + 1);
    }
  }

  Graph run() {
    result_.nodes.clear();
    for (int position = 0; position < static_cast<int>(graph_.nodes.size()); ++position) {
      if (copied_.contains(position)) continue;
      const Node& consumer = graph_.nodes[position];
      ValueMap names;
      for (const int needed : needed_by(consumer)) emit_copy(needed, names);
      emit(consumer, consumer, names);
    }
    for (const int position : copied_) {
      if (num_runs_[position] == 0) refuse(graph_.nodes[position], "nothing consumes it");
    }
    return std::move(result_);
  }

 private:
  /// Positions of the copied nodes that `consumer` depends on through copied nodes alone, in order.
  std::set<int> needed_by(const Node& consumer) const {
    std::set<int> needed;
    std::vector<ValueId> open = input_values(consumer);
    while (!open.empty()) {
      const Value& value = graph_.values[open.back()];
      open.pop_back();
      if (value.source != ValueSource::kNode) continue;
      const int producer = positions_.at(value.producer);
      if (!copied_.contains(producer) || !needed.insert(producer).second) continue;
      const std::vector<ValueId> inputs = input_values(graph_.nodes[producer]);
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return needed;
  }

  /// Runs a copied node; the first time as it is, later with fresh id and values.
  void emit_copy(int position, ValueMap& names) {
    const Node& recorded = graph_.nodes[position];
    Node node = recorded;
    if (++num_runs_[position] > 1) {
      node.id = next_node_++;
      node.copy_of = recorded.id;
      node.name += "/copy" + std::to_string(num_runs_[position]);
    }
    for (const ValueId id : recorded.outputs) {
      if (id < 0 || graph_.values[id].producer != recorded.id) continue;
      ValueId name = id;
      if (node.id != recorded.id) {
        name = static_cast<ValueId>(result_.values.size());
        result_.values.push_back(graph_.values[id]);
        result_.values.back().producer = node.id;
      }
      names[id] = name;
    }
    emit(recorded, std::move(node), names);
  }

  /// Appends `node`, which is `recorded` or a run of it, with values renamed.
  void emit(const Node& recorded, Node node, const ValueMap& names) {
    for (Argument& argument : node.inputs) argument = renamed(argument, names);
    std::map<int, int> storages;
    for (ValueId& id : node.outputs) {
      if (id < 0) continue;
      const ValueId name = names.contains(id) ? names.at(id) : id;
      if (graph_.values[id].producer == recorded.id) {
        result_.values[name].storage_id =
            storage(recorded, node, graph_.values[id].storage_id, storages, names);
      }
      id = name;
    }
    result_.nodes.push_back(std::move(node));
  }

  /// The memory of an output that was recorded in `old`: that of the input which it is a view of,
  /// else its own, a fresh one in a fresh run.
  int storage(const Node& recorded, const Node& node, int old, std::map<int, int>& storages,
              const ValueMap& names) {
    if (const auto known = storages.find(old); known != storages.end()) return known->second;
    std::optional<int> viewed;
    for (const ValueId id : input_values(recorded)) {
      if (graph_.values[id].storage_id != old) continue;
      const ValueId name = names.contains(id) ? names.at(id) : id;
      const int candidate = result_.values[name].storage_id;
      if (viewed && *viewed != candidate) {
        refuse(recorded, "one recorded memory became several copies, and its outputs may view any");
      }
      viewed = candidate;
    }
    const int fresh = node.id == recorded.id ? old : next_storage_;
    if (!viewed && fresh != old) ++next_storage_;
    return storages[old] = viewed.value_or(fresh);
  }

  const Graph& graph_;
  Graph result_;
  std::unordered_map<NodeId, int> positions_;
  std::set<int> copied_;  ///< Positions.
  std::unordered_map<int, int> num_runs_;
  NodeId next_node_ = 0;
  int next_storage_ = 0;
};

}  // namespace

Graph copy_to_consumers(const Graph& graph, std::span<const NodeId> nodes) {
  Graph result = Copier(graph, nodes).run();
  for (Graph& other : result.shorter) other = Copier(other, nodes).run();
  return result;
}

}  // namespace trireme::graph
