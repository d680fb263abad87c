#include "trireme/plan/sharding/tile_rules.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/vocabulary_nodes.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::Size;
using graph::ValueId;
using MaybeRule = std::optional<TileRule>;

const std::vector<Size>& sizes_of(const Graph& graph, ValueId value) {
  return graph.values[value].shape;
}

MaybeRule window_rule(const Graph& graph, const Node& node, int num_shards) {
  const auto window = window_of(graph, node);
  if (!window || !is_real(graph.values[*value_at(node, 0)].dtype)) return std::nullopt;
  const std::vector<Size>& in = sizes_of(graph, *value_at(node, 0));
  const std::vector<Size>& out = sizes_of(graph, node.outputs.front());
  if (!can_tile(in, kRowDim, num_shards) || !can_tile(out, kRowDim, num_shards)) {
    return std::nullopt;
  }
  for (const RowRange tile : all_tiles(out[kRowDim].fixed, num_shards)) {
    if (!rows_for(*window, tile, in[kRowDim].fixed)) return std::nullopt;
  }
  return TileRule{.kind = TileKind::kWindow,
                  .inputs = {{*value_at(node, 0), kRowDim}},
                  .output_dim = kRowDim,
                  .over = {},
                  .window = *window};
}

bool is_batch_norm(const Node& node) { return node.op.ends_with("::batch_norm"); }

/// Whether a norm takes the statistics of what it normalizes.
bool takes_statistics(const Node& node, const NormPositions& at) {
  return at.training < 0 || bool_at(node, static_cast<std::size_t>(at.training)).value_or(false);
}

/// Of a norm's input and residual, which are split alike.
MaybeRule rule_of_norm(const Node& node, const NormPositions& at, const Splits& known) {
  const auto x = value_at(node, 0);
  const auto split = x ? known.find(*x) : known.end();
  if (split == known.end() || split->second.dim < kRowDim) return std::nullopt;
  TileRule rule{.inputs = {{*x, split->second.dim}}, .output_dim = split->second.dim, .over = {}};
  if (at.residual < 0) return rule;
  const ValueId residual = value_at(node, static_cast<std::size_t>(at.residual)).value_or(-1);
  if (residual >= 0) rule.inputs[residual] = split->second.dim;
  return rule;
}

/// Statistics are of all samples, and worked out in f32 (tiled_norm.h).
bool has_usual_statistics(const Graph& graph, const Node& node, const NormPositions& at) {
  const auto x = value_at(node, 0);
  const bool has_groups = node.op == "trireme::batch_norm" && node.overload == "grouped";
  if (!x || has_groups || graph.values[*x].dtype == Dtype::kF64) return false;
  std::vector<int> others = {NormPositions::kWeight, NormPositions::kBias};
  if (at.running_mean >= 0) others.insert(others.end(), {at.running_mean, at.running_mean + 1});
  return std::ranges::all_of(others, [&](int index) {
    const auto value = value_at(node, static_cast<std::size_t>(index));
    return !value || graph.values[*value].dtype == Dtype::kF32;
  });
}

/// An instance norm keeps no statistics here.
MaybeRule norm_rule(const Graph& graph, const Node& node, const Splits& known) {
  const NormPositions* at = norm_positions(node);
  if (at == nullptr || !takes_statistics(node, *at) || !has_usual_statistics(graph, node, *at)) {
    return std::nullopt;
  }
  const bool keeps = at->running_mean >= 0 &&
                     value_at(node, static_cast<std::size_t>(at->running_mean)).has_value();
  if (keeps && !is_batch_norm(node)) return std::nullopt;
  MaybeRule rule = rule_of_norm(node, *at, known);
  if (!rule) return std::nullopt;
  rule->kind = TileKind::kNorm;
  if (is_batch_norm(node)) rule->over.push_back(0);
  const auto rank = std::ssize(sizes_of(graph, *value_at(node, 0)));
  for (int dim = 2; dim < rank; ++dim) rule->over.push_back(dim);
  return rule;
}

/// A batch norm that has its statistics already: rows do not meet.
MaybeRule fixed_norm_rule(const Node& node, const Splits& known) {
  const NormPositions* at = norm_positions(node);
  if (at == nullptr || takes_statistics(node, *at) || !is_batch_norm(node)) return std::nullopt;
  return rule_of_norm(node, *at, known);
}

/// Dimensions of the first input that a sum or mean is over; nothing for other operators.
std::optional<std::vector<int>> summed(const Graph& graph, const Node& node) {
  const auto x = value_at(node, 0);
  if (!x || (node.op != "aten::sum" && node.op != "aten::mean")) return std::nullopt;
  const int rank = static_cast<int>(sizes_of(graph, *x).size());
  std::vector<int> dims;
  if (node.overload.empty()) {
    for (int dim = 0; dim < rank; ++dim) dims.push_back(dim);
    return dims;
  }
  const auto given = integers_at(node, 1);
  if (!given) return std::nullopt;
  for (const std::int64_t dim : *given) {
    dims.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  }
  return dims;
}

MaybeRule sum_rule(const Graph& graph, const Node& node, const Splits& known) {
  const auto dims = summed(graph, node);
  if (!dims) return std::nullopt;
  const ValueId x = *value_at(node, 0);
  const auto split = known.find(x);
  const auto dtype = [&](ValueId value) { return graph.values[value].dtype; };
  if (split == known.end() || dtype(x) != Dtype::kF32 || dtype(node.outputs.front()) != dtype(x)) {
    return std::nullopt;
  }
  if (std::ranges::find(*dims, split->second.dim) == dims->end()) return std::nullopt;
  return TileRule{.kind = TileKind::kSum,
                  .inputs = {{x, split->second.dim}},
                  .over = *dims,
                  .is_mean = node.op == "aten::mean"};
}

/// Of pixels of tiles; where it is not reduced, losses have rows too.
MaybeRule loss_rule(const Graph& graph, const Node& node, const Splits& known) {
  if (!is_cross_entropy(graph, node)) return std::nullopt;
  const ValueId logits = *value_at(node, 0), classes = *value_at(node, 1);
  const auto split = known.find(logits);
  const bool is_f32 = graph.values[node.outputs.front()].dtype == Dtype::kF32;
  if (split == known.end() || split->second.dim < kRowDim || !is_f32) return std::nullopt;
  const int dim = split->second.dim;
  TileRule rule{.inputs = {{logits, dim}, {classes, dim - 1}}, .over = {}};
  if (sizes_of(graph, node.outputs.front()).empty()) {
    rule.kind = TileKind::kLoss;
  } else {
    rule.output_dim = dim - 1;
  }
  return rule;
}

/// Along another dimension than that of rows.
MaybeRule join_rule(const Graph& graph, const Node& node, const Splits& known) {
  if (node.op != "aten::cat") return std::nullopt;
  const std::vector<ValueId> inputs = graph::input_values(node);
  const auto first = std::ranges::find_if(inputs, [&](ValueId id) { return known.contains(id); });
  if (first == inputs.end()) return std::nullopt;
  const int dim = known.at(*first).dim;
  const auto rank = std::ssize(sizes_of(graph, *first));
  const auto joined = dimension_at(node, 1, static_cast<int>(rank));
  if (!joined || *joined == dim) return std::nullopt;
  TileRule rule{.inputs = {}, .output_dim = dim, .over = {}};
  for (const ValueId input : inputs) {
    if (std::ssize(sizes_of(graph, input)) != rank) return std::nullopt;  // an empty one
    rule.inputs[input] = dim;
  }
  return rule;
}

/// What treats elements alike (dimension_map.h).
MaybeRule local_rule(const Graph& graph, const Node& node, const Splits& known) {
  if (node.flags.random || is_reshape(node) || node.op == "aten::expand") return std::nullopt;
  const auto map = dimension_map(graph, node);
  if (!map) return std::nullopt;
  TileRule rule{.inputs = {}, .over = {}};
  for (const DimensionMap::Input& input : map->inputs) {
    const auto split = known.find(input.value);
    if (split == known.end()) continue;
    const auto dim = std::ranges::find(input.of_output, split->second.dim);
    if (dim == input.of_output.end()) return std::nullopt;
    rule.output_dim = static_cast<int>(dim - input.of_output.begin());
    break;
  }
  if (rule.output_dim < 0 || rule.output_dim == map->chunked_dim ||
      std::ranges::find(map->whole, rule.output_dim) != map->whole.end()) {
    return std::nullopt;
  }
  for (const DimensionMap::Input& input : map->inputs) {
    const int dim = input.of_output[rule.output_dim];
    if (dim >= 0) rule.inputs[input.value] = dim;
  }
  return rule;
}

/// Whether all that is split is taken by rows, along its dimension, and what is written is split.
bool fits(const Graph& graph, const Node& node, const TileRule& rule, const Splits& known,
          int num_shards) {
  for (const ValueId input : graph::input_values(node)) {
    const auto split = known.find(input);
    const auto taken = rule.inputs.find(input);
    const bool is_taken = taken != rule.inputs.end();
    if (split != known.end() && (!is_taken || taken->second != split->second.dim)) return false;
    if (is_taken && !can_tile(sizes_of(graph, input), taken->second, num_shards)) return false;
    const bool is_written = std::ranges::find(node.writes, input) != node.writes.end();
    if (is_written && rule.kind != TileKind::kNorm && split == known.end()) return false;
  }
  if (rule.output_dim < 0) return node.writes.empty();
  return std::ranges::all_of(node.outputs, [&](ValueId output) {
    return output >= 0 && can_tile(sizes_of(graph, output), rule.output_dim, num_shards);
  });
}

}  // namespace

const NormPositions* norm_positions(const Node& node) {
  static const std::map<std::string_view, NormPositions> kTable = {
      {"aten::batch_norm", {.running_mean = 3, .training = 5, .eps = 7}},
      {"aten::instance_norm", {.running_mean = 3, .training = 5, .eps = 7}},
      {"trireme::batch_norm",
       {.running_mean = 3, .training = 5, .eps = 7, .residual = 8, .relu = 9}},
      {"trireme::instance_norm", {.eps = 3, .relu = 4}},
  };
  const auto found = kTable.find(node.op);
  return found == kTable.end() ? nullptr : &found->second;
}

std::optional<TileRule> tile_rule(const Graph& graph, const Node& node, const Splits& known,
                                  int num_shards) {
  if (node.outputs.empty() || node.outputs.front() < 0) return std::nullopt;
  MaybeRule rule = window_rule(graph, node, num_shards);
  if (!rule) rule = norm_rule(graph, node, known);
  if (!rule) rule = fixed_norm_rule(node, known);
  if (!rule) rule = sum_rule(graph, node, known);
  if (!rule) rule = loss_rule(graph, node, known);
  if (!rule) rule = join_rule(graph, node, known);
  if (!rule) rule = local_rule(graph, node, known);
  if (!rule || !fits(graph, node, *rule, known, num_shards)) return std::nullopt;
  return rule;
}

}  // namespace trireme::sharding
