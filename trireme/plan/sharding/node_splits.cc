#include "trireme/plan/sharding/node_splits.h"

#include <algorithm>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using Input = DimensionMap::Input;

/// Adds up what is wanted of values; fails where two uses of one value want different things.
class Wanted {
 public:
  Wanted(const Graph& graph, int num_shards) : graph_(graph), num_shards_(num_shards) {}

  void split(ValueId value, TensorSplit split) {
    const auto [place, is_new] = result_.values.emplace(value, split);
    if (!is_new && place->second != split) fits_ = false;
    if (!can_split(graph_.values[value].shape, split, num_shards_)) fits_ = false;
  }

  /// Where all that is known is among what is wanted.
  std::optional<NodeSplits> result(const Node& node, const Splits& known) const;

  NodeSplits& node() { return result_; }

 private:
  const Graph& graph_;
  int num_shards_;
  NodeSplits result_;
  bool fits_ = true;
};

std::vector<ValueId> all_values(const Node& node) {
  std::vector<ValueId> values = graph::input_values(node);
  for (const ValueId output : node.outputs) {
    if (output >= 0) values.push_back(output);
  }
  return values;
}

std::optional<NodeSplits> Wanted::result(const Node& node, const Splits& known) const {
  if (!fits_) return std::nullopt;
  for (const ValueId value : all_values(node)) {
    const auto given = known.find(value);
    if (given == known.end()) continue;
    const auto wanted = result_.values.find(value);
    if (wanted == result_.values.end() || wanted->second != given->second) return std::nullopt;
  }
  return result_;
}

std::optional<NodeSplits> reshape_splits(const Graph& graph, const Node& node, const Splits& known,
                                         int num_shards) {
  const ValueId from = *value_at(node, 0), to = node.outputs.front();
  const auto shape = [&](ValueId value) -> const auto& { return graph.values[value].shape; };
  Wanted wanted(graph, num_shards);
  if (const auto given = known.find(from); given != known.end()) {
    const auto split = reshaped(shape(from), shape(to), given->second, num_shards);
    if (!split) return std::nullopt;
    wanted.split(from, given->second);
    wanted.split(to, *split);
  } else {
    const TensorSplit split_to = known.at(to);
    const auto split = reshaped(shape(to), shape(from), split_to, num_shards);
    if (!split) return std::nullopt;
    wanted.split(from, *split);
    wanted.split(to, split_to);
  }
  return wanted.result(node, known);
}

/// Of an input that is split along what a product sums over: its blocks.
std::optional<std::int64_t> contracted_blocks(const DimensionMap& map, const Splits& known) {
  if (!map.contraction) return std::nullopt;
  const auto& [left, left_dim, right, right_dim] = *map.contraction;
  for (const auto& [value, dim] : {std::pair(left, left_dim), std::pair(right, right_dim)}) {
    const auto given = known.find(value);
    if (given != known.end() && given->second.dim == dim) return given->second.blocks;
  }
  return std::nullopt;
}

/// The split of the outputs that one of the node's values asks for.
std::optional<TensorSplit> output_split(const DimensionMap& map, const Node& node,
                                        const Splits& known) {
  for (const ValueId output : node.outputs) {
    if (const auto given = known.find(output); given != known.end()) return given->second;
  }
  for (const Input& input : map.inputs) {
    const auto given = known.find(input.value);
    if (given == known.end()) continue;
    const auto dim = std::ranges::find(input.of_output, given->second.dim);
    if (dim == input.of_output.end()) return std::nullopt;
    TensorSplit split{static_cast<int>(dim - input.of_output.begin()), given->second.blocks};
    if (split.dim != map.chunked_dim) return split;
    if (split.blocks % map.num_chunks != 0) return std::nullopt;
    split.blocks /= map.num_chunks;
    return split;
  }
  return std::nullopt;
}

std::optional<NodeSplits> mapped_splits(const DimensionMap& map, const Graph& graph,
                                        const Node& node, const Splits& known, int num_shards) {
  Wanted wanted(graph, num_shards);
  if (const auto blocks = contracted_blocks(map, known)) {
    wanted.node().is_sum = true;
    wanted.split(map.contraction->left, {map.contraction->left_dim, *blocks});
    if (map.contraction->right >= 0) {
      wanted.split(map.contraction->right, {map.contraction->right_dim, *blocks});
    }
    return wanted.result(node, known);
  }
  const auto split = output_split(map, node, known);
  if (!split || std::ranges::find(map.whole, split->dim) != map.whole.end()) return std::nullopt;
  for (const ValueId output : node.outputs) wanted.split(output, *split);
  for (const Input& input : map.inputs) {
    const int dim = input.of_output[split->dim];
    if (dim < 0) continue;
    const bool is_chunked = split->dim == map.chunked_dim;
    wanted.split(input.value, {dim, split->blocks * (is_chunked ? map.num_chunks : 1)});
  }
  return wanted.result(node, known);
}

/// Divides a fixed size; -1, which torch works out, stays.
void divide(graph::Argument& argument, int num_shards) {
  auto* size = std::get_if<graph::Size>(&argument.content);
  if (size != nullptr && size->is_fixed() && size->fixed > 0) size->fixed /= num_shards;
}

void divide_item(Node& node, std::size_t argument, std::int64_t item, int num_shards) {
  auto* list = std::get_if<graph::ArgumentList>(&node.inputs[argument].content);
  if (list == nullptr || item < 0 || item >= std::ssize(*list)) return;
  divide((*list)[item], num_shards);
}

}  // namespace

std::optional<NodeSplits> node_splits(const Graph& graph, const Node& node, const Splits& known,
                                      int num_shards) {
  if (is_reshape(node)) return reshape_splits(graph, node, known, num_shards);
  const auto map = dimension_map(graph, node);
  if (!map) return std::nullopt;
  return mapped_splits(*map, graph, node, known, num_shards);
}

void make_local(Node& node, const Graph& graph, const NodeSplits& splits, int num_shards) {
  const auto found = splits.values.find(node.outputs.front());
  if (found == splits.values.end()) return;
  const int dim = found->second.dim;
  if (node.op == "aten::view" || node.op == "aten::reshape" || node.op == "aten::_unsafe_view" ||
      node.op == "aten::expand") {
    divide_item(node, 1, dim, num_shards);
  }
  if (node.op == "aten::unflatten") {
    const auto rank = static_cast<std::int64_t>(graph.values[*value_at(node, 0)].shape.size());
    const auto first = integer_at(node, 1);
    if (first) divide_item(node, 2, dim - (*first < 0 ? *first + rank : *first), num_shards);
  }
  if (node.op == "aten::split") {
    const auto map = dimension_map(graph, node);
    if (map && map->chunked_dim == dim) divide(node.inputs[1], num_shards);
  }
}

}  // namespace trireme::sharding
