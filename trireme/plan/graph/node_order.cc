#include "trireme/plan/graph/node_order.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

/// Memory whose nodes all keep their order.
std::unordered_set<int> touchy_storages(const Graph& graph) {
  std::unordered_set<int> storages;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.writes) storages.insert(graph.values[id].storage_id);
  }
  for (const auto& [storage, history] : storage_histories(graph)) {
    if (!history.strided.empty()) storages.insert(storage);
  }
  return storages;
}

/// Values that a node makes.
std::vector<ValueId> made_values(const Graph& graph, const Node& node) {
  std::vector<ValueId> made;
  for (const ValueId id : node.outputs) {
    if (id >= 0 && graph.values[id].producer == node.id) made.push_back(id);
  }
  return made;
}

/// The last node of each chain so far, and who comes after whom.
class Chains {
 public:
  explicit Chains(std::size_t num_nodes) : later_(num_nodes) {}

  template <typename Key>
  void add(std::unordered_map<Key, int>& last, Key key, int position) {
    const auto [entry, is_first] = last.try_emplace(key, position);
    if (!is_first) link(std::exchange(entry->second, position), position);
  }

  void link(int before, int after) {
    if (before != after) later_[before].insert(after);
  }

  std::vector<std::vector<int>> later() const {
    std::vector<std::vector<int>> lists;
    for (const std::set<int>& one : later_) lists.emplace_back(one.begin(), one.end());
    return lists;
  }

 private:
  std::vector<std::set<int>> later_;
};

/// Nodes that take a value that wants a gradient, themselves or through copied nodes: copies run right before who needs them,
/// and are uses of the value in that order.
void chain_consumers(const Graph& graph, std::span<const NodeId> copied, Chains& chains) {
  const std::unordered_set<NodeId> is_copied(copied.begin(), copied.end());
  std::unordered_map<ValueId, std::set<ValueId>>
      behind;  // Values of copied nodes: what they are made of.
  std::unordered_map<ValueId, int> last_consumer;
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    std::set<ValueId> taken;
    for (const ValueId id : input_values(node)) {
      if (const auto copy = behind.find(id); copy != behind.end()) {
        taken.insert(copy->second.begin(), copy->second.end());
      } else if (graph.values[id].requires_grad) {
        taken.insert(id);
      }
    }
    if (is_copied.contains(node.id)) {
      for (const ValueId id : made_values(graph, node)) behind[id] = taken;
    } else {
      for (const ValueId id : taken) chains.add(last_consumer, id, position);
    }
  }
}

}  // namespace

std::vector<std::vector<int>> later_nodes(const Graph& graph, std::span<const NodeId> copied) {
  const std::unordered_set<int> touchy = touchy_storages(graph);
  Chains chains(graph.nodes.size());
  std::unordered_map<ValueId, int> producers, last_use;
  std::unordered_map<int, int> last_touch;  // By storage.
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    std::vector<ValueId> touched = input_values(node);
    for (const ValueId id : touched) {
      if (const auto maker = producers.find(id); maker != producers.end()) {
        chains.link(maker->second, position);
      }
      if (graph.values[id].requires_grad) chains.add(last_use, id, position);
    }
    for (const ValueId id : made_values(graph, node)) {
      producers.emplace(id, position);
      touched.push_back(id);
    }
    for (const ValueId id : touched) {
      const int storage = graph.values[id].storage_id;
      if (touchy.contains(storage)) chains.add(last_touch, storage, position);
    }
  }
  if (!copied.empty()) chain_consumers(graph, copied, chains);
  return chains.later();
}

std::string why_not_in_order(const Graph& graph, std::span<const NodeId> order,
                             std::span<const NodeId> copied) {
  const std::unordered_map<NodeId, int> positions = node_positions(graph);
  std::vector<int> place(graph.nodes.size(), -1);
  for (std::size_t p = 0; p < order.size(); ++p) {
    const auto found = positions.find(order[p]);
    if (found == positions.end()) {
      return "the graph has no node " + std::to_string(order[p]);
    }
    if (place[found->second] >= 0) return "node " + std::to_string(order[p]) + " is there twice";
    place[found->second] = static_cast<int>(p);
  }
  if (order.size() != graph.nodes.size()) {
    return "it has " + std::to_string(order.size()) + " of the graph's " +
           std::to_string(graph.nodes.size()) + " nodes; give all";
  }
  const std::vector<std::vector<int>> later = later_nodes(graph, copied);
  for (std::size_t before = 0; before < later.size(); ++before) {
    for (const int after : later[before]) {
      if (place[before] < place[after]) continue;
      return internal::describe(graph.nodes[after]) + " must run after " +
             internal::describe(graph.nodes[before]) +
             ", whose value it takes or beside which it uses the same value or memory" +
             (copied.empty() ? "" : ", itself or through copied nodes");
    }
  }
  return "";
}

Graph reordered(const Graph& graph, std::span<const NodeId> order, std::span<const NodeId> copied) {
  if (const std::string reason = why_not_in_order(graph, order, copied); !reason.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "the order of nodes cannot be had: " + reason);
  }
  Graph result = graph;
  put_in_order(result, order);
  return result;
}

void put_in_order(Graph& graph, std::span<const NodeId> order) {
  const std::unordered_map<NodeId, int> positions = node_positions(graph);
  std::vector<int> from;
  for (const NodeId id : order) from.push_back(positions.at(id));
  const auto move_nodes = [&from](Graph& one) {
    std::vector<Node> nodes;
    nodes.reserve(from.size());
    for (const int position : from) nodes.push_back(std::move(one.nodes[position]));
    one.nodes = std::move(nodes);
  };
  move_nodes(graph);
  for (Graph& shorter : graph.shorter) move_nodes(shorter);
}

}  // namespace trireme::graph
