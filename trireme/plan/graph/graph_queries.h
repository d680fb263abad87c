#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Ids of the values among the inputs of `node`, lists included, in order, repeats kept.
std::vector<ValueId> input_values(const Node& node);

/// Whether the node takes a field of the batch, so that who runs it reads samples.
bool takes_field(const Graph& graph, const Node& node);

/// Whether every stage gets such a value anew, as it was at first: batch, step scalars, constants.
bool is_outside(ValueSource source);

/// Position of each node in the execution order.
std::unordered_map<NodeId, int> node_positions(const Graph& graph);

/// What happens to a piece of memory in the course of the graph.
struct StorageHistory {
  static constexpr int kNever = -2;
  static constexpr int kBatch = -1;  ///< Produced before the first node, as part of the batch.

  /// First position at which one of its values is produced, by a node or as an input; kNever where
  /// it is only a parameter's, a buffer's or a constant's.
  int first_production = kNever;
  ValueId first_value = -1;  ///< The value produced there.
  std::vector<int> writes;   ///< Positions of nodes that write to it, ascending.
  std::vector<int> strided;  ///< Positions of `aten::as_strided*` nodes that view it, ascending.
};

/// History by storage id. Cost linear in nodes and arguments.
std::unordered_map<int, StorageHistory> storage_histories(const Graph& graph);

/// Positions of the nodes that compute `values` and nothing else, in execution order. Nodes that
/// write into memory of one of them are among them. Cost linear in nodes and arguments.
std::vector<int> ancestors(const Graph& graph, std::span<const ValueId> values);

/// Elements of `value` where the batch has `batch` samples.
///
/// Errors   kInvalidArgument where a dimension is negative at that batch or the product exceeds
///          64 bits.
std::int64_t num_elements_at(const Value& value, std::int64_t batch);

/// `num_elements_at` times the size of an element: its bytes when sent densely.
std::int64_t bytes_at(const Value& value, std::int64_t batch);

/// A parameter with more recorded uses than this has one site for all of them.
inline constexpr int kMaxUseSites = 4;

/// Uses of a parameter whose gradients are accumulated together.
///
/// A use is a node with gradient mode on that has the parameter, and its value requires a gradient,
/// among its inputs, lists included; taking it twice is one use. Up to kMaxUseSites uses are a site
/// each, and so are their copies (copy_to_consumers.h), however many; more (an unrolled cell) are a single
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
