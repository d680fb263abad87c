#include "trireme/plan/graph/uses.h"

#include <algorithm>
#include <tuple>

#include "trireme/plan/graph/index.h"

namespace trireme::graph {
namespace {

/// Nodes that use a parameter.
struct Users {
  std::vector<NodeId> nodes;  ///< In execution order.
  int num_recorded = 0;       ///< Those that are no copies.
};

/// By parameter.
std::vector<Users> find_users(const Graph& graph) {
  std::vector<int> parameter_of(graph.values.size(), -1);
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const ValueId value = graph.parameters[p].value;
    if (graph.values[value].requires_grad) parameter_of[value] = static_cast<int>(p);
  }
  std::vector<Users> users(graph.parameters.size());
  for (const Node& node : graph.nodes) {
    if (!node.flags.grad_mode) continue;
    for (const ValueId value : input_values(node)) {
      if (parameter_of[value] < 0) continue;
      Users& all = users[parameter_of[value]];
      if (!all.nodes.empty() && all.nodes.back() == node.id) continue;
      all.nodes.push_back(node.id);
      all.num_recorded += node.copy_of < 0 ? 1 : 0;
    }
  }
  return users;
}

/// Weights of a bag's entries would keep the rows for their backward.
bool takes_rows(const Node& node) {
  constexpr std::size_t kEntryWeights = 6;
  if (node.op == kRescaleRows || node.op == "aten::embedding") return true;
  return node.op == "aten::embedding_bag" &&
         (node.inputs.size() <= kEntryWeights ||
          std::holds_alternative<std::monostate>(node.inputs[kEntryWeights].content));
}

}  // namespace

std::vector<int> written_parameters(const Graph& graph) {
  std::vector<bool> is_written(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.writes) is_written[value] = true;
  }
  std::vector<int> written;
  for (int p = 0; p < static_cast<int>(graph.parameters.size()); ++p) {
    if (is_written[graph.parameters[p].value]) written.push_back(p);
  }
  return written;
}

const Node* use_beside_rows(const Graph& graph, int parameter) {
  const int storage = graph.values[graph.parameters[parameter].value].storage_id;
  for (const Node& node : graph.nodes) {
    if (takes_rows(node)) continue;
    for (const ValueId value : input_values(node)) {
      if (graph.values[value].storage_id == storage) return &node;
    }
  }
  return nullptr;
}

std::vector<std::string> unused_parameters(const Graph& graph) {
  const std::vector<Users> users = find_users(graph);
  std::vector<std::string> names;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const Parameter& parameter = graph.parameters[p];
    if (graph.values[parameter.value].requires_grad && users[p].nodes.empty()) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

std::vector<UseSite> use_sites(const Graph& graph) {
  const std::vector<Users> users = find_users(graph);
  std::vector<UseSite> sites;
  for (int parameter = 0; parameter < static_cast<int>(users.size()); ++parameter) {
    const std::vector<NodeId>& nodes = users[parameter].nodes;
    if (users[parameter].num_recorded > kMaxUseSites) {
      sites.push_back({parameter, 0, nodes});
      continue;
    }
    for (int site = 0; site < static_cast<int>(nodes.size()); ++site) {
      sites.push_back({parameter, site, {nodes[site]}});
    }
  }
  return sites;
}

std::optional<int> site_of(std::span<const UseSite> sites, NodeId node, int parameter) {
  auto found =
      std::lower_bound(sites.begin(), sites.end(), parameter,
                       [](const UseSite& site, int wanted) { return site.parameter < wanted; });
  for (; found != sites.end() && found->parameter == parameter; ++found) {
    if (std::find(found->nodes.begin(), found->nodes.end(), node) != found->nodes.end()) {
      return found->site;
    }
  }
  return std::nullopt;
}

}  // namespace trireme::graph
