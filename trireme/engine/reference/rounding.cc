#include "trireme/engine/reference/rounding.h"

#include <algorithm>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::reference {
namespace {

bool has_sparse_gradient(const graph::Node& node) {
  constexpr std::size_t kSparse = 4;  // of aten::embedding; of aten::embedding_bag it is the next
  const std::size_t place = node.op == "aten::embedding_bag" ? kSparse + 1 : kSparse;
  const bool is_embedding = node.op == "aten::embedding" || node.op == "aten::embedding_bag";
  return is_embedding && node.inputs.size() > place && node.inputs[place] == graph::Argument{true};
}

bool is_any(const graph::Graph& graph, bool (*is_so)(const graph::Node&)) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_so);
}

}  // namespace

Rounding rounding_of(const graph::Graph& recorded, const layout::Plan& plan) {
  constexpr double kLowerPrecision = 2e-2;  // bf16 has 8 bits
  const bool has_autocast =
      is_any(recorded, [](const graph::Node& node) { return node.autocast.has_value(); });
  Rounding result;
  if (has_autocast) result.limit = kLowerPrecision;
  result.is_everywhere =
      !plan.copied_nodes.empty() ||
      is_any(recorded, [](const graph::Node& node) { return node.op == "opaque"; });
  const auto positions = graph::node_positions(recorded);
  for (const graph::UseSite& site : graph::use_sites(recorded)) {
    const bool is_sparse =
        std::any_of(site.nodes.begin(), site.nodes.end(), [&](graph::NodeId node) {
          return has_sparse_gradient(recorded.nodes[positions.at(node)]);
        });
    if (site.site > 0 || is_sparse || (has_autocast && site.nodes.size() > 1)) {
      result.parameters.insert(recorded.parameters[site.parameter].name);
    }
  }
  return result;
}

}  // namespace trireme::reference
