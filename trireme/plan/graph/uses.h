#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// A parameter with more recorded uses than this has one site for all of them.
inline constexpr int kMaxUseSites = 4;

/// Uses of a parameter whose gradients are accumulated together.
///
/// A use is a node with gradient mode on that has the parameter, and its value requires a gradient,
/// among its inputs, lists included; taking it twice is one use. Up to kMaxUseSites uses are a site
/// each, and so are their copies (copies.h), however many; more (an unrolled cell) are a single
/// site, between whose nodes no cut may fall.
struct UseSite {
  int parameter = 0;          ///< Index in `Graph::parameters`.
  int site = 0;               ///< Index among the parameter's sites, in node order.
  std::vector<NodeId> nodes;  ///< In execution order.
  bool operator==(const UseSite&) const = default;
};

/// All use sites, by parameter, then site. A parameter without a use has none.
///
/// graph   one that passes `check`.
/// Cost    linear in nodes and arguments.
std::vector<UseSite> use_sites(const Graph& graph);

/// The one operator that may write to a parameter: it scales rows of an embedding down to a largest
/// norm (max_norm) before they are taken.
inline constexpr std::string_view kRescaleRows = "aten::embedding_renorm_";

/// Indices in `Graph::parameters` of those that a node writes to, ascending.
std::vector<int> written_parameters(const Graph& graph);

/// The first node that uses a parameter otherwise than to rescale and to take its rows: one that is
/// written has none, since others keep it for their backward. Null where there is none.
const Node* use_beside_rows(const Graph& graph, int parameter);

/// Names of trainable parameters without a use, in order of registration.
std::vector<std::string> unused_parameters(const Graph& graph);

/// The site of `parameter` that `node` belongs to; nothing where it is no use.
///
/// sites   what `use_sites` gave. Cost logarithmic in their number, linear in the site's nodes.
std::optional<int> site_of(std::span<const UseSite> sites, NodeId node, int parameter);

}  // namespace trireme::graph
