#include "trireme/plan/simulate/backward_parts.h"

#include <algorithm>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/gradient_rules.h"

namespace trireme::simulate {
namespace {

using graph::Node, graph::ValueId;

class Parts {
 public:
  Parts(const graph::Graph& graph, const std::unordered_set<int>& parameters,
        const std::vector<int>& positions)
      : graph_(graph), positions_(positions), parameters_(parameters) {}

  std::vector<BackwardPart> find(const std::set<ValueId>& received) const {
    const std::vector<bool> leads = leading_to(received);
    std::vector<BackwardPart> parts(positions_.size(), BackwardPart::kSecond);
    std::unordered_set<ValueId> taken;  // By what runs in the first part.
    for (std::size_t t = parts.size(); t-- > 0;) {
      const Node& node = graph_.nodes[positions_[t]];
      const bool is_taken = std::ranges::any_of(
          node.outputs, [&](ValueId id) { return id >= 0 && taken.contains(id); });
      if (!leads[t] && !is_taken) continue;
      const bool is_apart = leads[t] && has_parameter(node) && computes_apart(node.op);
      parts[t] = is_apart ? BackwardPart::kBoth : BackwardPart::kFirst;
      for (const ValueId id : graph::input_values(node)) taken.insert(id);
    }
    if (shares_parameter(parts)) {  // Its gradient is the sum of one backward.
      std::ranges::replace(parts, BackwardPart::kSecond, BackwardPart::kFirst);
    }
    return parts;
  }

 private:
  /// Whether each node's backward leads to one of these values.
  std::vector<bool> leading_to(const std::set<ValueId>& received) const {
    std::unordered_set<ValueId> reached(received.begin(), received.end());
    std::vector<bool> leads;
    for (const int position : positions_) {
      const Node& node = graph_.nodes[position];
      const std::vector<ValueId> inputs = graph::input_values(node);
      leads.push_back(
          std::ranges::any_of(inputs, [&](ValueId id) { return reached.contains(id); }));
      if (!leads.back()) continue;
      for (const ValueId id : node.outputs) {
        if (id >= 0 && graph_.values[id].requires_grad) reached.insert(id);
      }
    }
    return leads;
  }

  /// Whether the node computes with a parameter or a view of one.
  bool has_parameter(const Node& node) const {
    return !node.flags.view && std::ranges::any_of(graph::input_values(node), [&](ValueId id) {
      return parameters_.contains(graph_.values[id].storage_id);
    });
  }

  bool shares_parameter(const std::vector<BackwardPart>& parts) const {
    std::unordered_set<int> first, second;
    for (std::size_t t = 0; t < parts.size(); ++t) {
      for (const ValueId id : graph::input_values(graph_.nodes[positions_[t]])) {
        const int storage = graph_.values[id].storage_id;
        if (!parameters_.contains(storage)) continue;
        (parts[t] == BackwardPart::kSecond ? second : first).insert(storage);
      }
    }
    return std::ranges::any_of(second, [&](int storage) { return first.contains(storage); });
  }

  const graph::Graph& graph_;
  const std::vector<int>& positions_;
  const std::unordered_set<int>& parameters_;
};

}  // namespace

std::unordered_set<int> parameter_storages(const graph::Graph& graph) {
  std::unordered_set<int> storages;
  for (const graph::Parameter& parameter : graph.parameters) {
    const graph::Value& value = graph.values[parameter.value];
    if (value.requires_grad) storages.insert(value.storage_id);
  }
  return storages;
}

std::vector<BackwardPart> backward_parts(const graph::Graph& graph,
                                         const std::unordered_set<int>& parameters,
                                         const std::vector<int>& positions,
                                         const std::set<ValueId>& received) {
  return Parts(graph, parameters, positions).find(received);
}

}  // namespace trireme::simulate
