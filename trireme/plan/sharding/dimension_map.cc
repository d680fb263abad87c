// One function for each family of operators, and the table of the operators that belong to it.

#include "trireme/plan/sharding/dimension_map.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/elementwise_operators.h"
#include "trireme/plan/sharding/sizes.h"
#include "trireme/plan/sharding/vocabulary_nodes.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::Size;
using graph::ValueId;
using MaybeMap = std::optional<DimensionMap>;
using Input = DimensionMap::Input;

const std::vector<Size>& shape_of(const Graph& graph, ValueId value) {
  return graph.values[value].shape;
}

const std::vector<Size>& output_shape(const Graph& graph, const Node& node) {
  return shape_of(graph, node.outputs.front());
}

int rank_of(const Graph& graph, ValueId value) {
  return static_cast<int>(shape_of(graph, value).size());
}

/// Dimensions aligned from the last one on; one that is repeated is none.
Input broadcast(const Graph& graph, ValueId value, const std::vector<Size>& shape) {
  Input input{value, std::vector<int>(shape.size(), -1)};
  const std::vector<Size>& own = shape_of(graph, value);
  const int shift = static_cast<int>(shape.size()) - static_cast<int>(own.size());
  for (int dim = std::max(shift, 0); dim < static_cast<int>(shape.size()); ++dim) {
    if (own[dim - shift] == shape[dim]) input.of_output[dim] = dim - shift;
  }
  return input;
}

/// The same for all but the last `num` dimensions, which are none.
Input leading(const Graph& graph, ValueId value, const std::vector<Size>& shape, int num) {
  Input input = broadcast(graph, value, shape);
  for (int i = 1; i <= num && i <= static_cast<int>(shape.size()); ++i) {
    input.of_output[shape.size() - i] = -1;
  }
  return input;
}

/// Not of what draws: shards would draw other numbers than the whole.
MaybeMap elementwise(const Graph& graph, const Node& node) {
  if (node.flags.random && !is_dropout(node)) return std::nullopt;
  DimensionMap map;
  for (const ValueId value : graph::input_values(node)) {
    map.inputs.push_back(broadcast(graph, value, output_shape(graph, node)));
  }
  return map;
}

/// Whether elements lie in memory in the order of the dimensions, one after the other.
bool is_contiguous(const graph::Value& value) {
  Size expected{0, 1};
  for (std::size_t i = value.shape.size(); i-- > 0;) {
    if (value.shape[i] != Size{0, 1} && value.strides[i] != expected) return false;
    if (!expected.is_fixed() && !value.shape[i].is_fixed()) return false;
    expected = times(expected, value.shape[i]);
  }
  return true;
}

MaybeMap dropout(const Graph& graph, const Node& node) {
  const auto value = value_at(node, 0);
  if (!value || !is_contiguous(graph.values[*value])) return std::nullopt;
  if (graph.values[*value].is_ragged) return std::nullopt;  // how large the mask is depends on data
  return elementwise(graph, node);
}

MaybeMap softmax(const Graph& graph, const Node& node) {
  const auto dim = dimension_at(node, 1, static_cast<int>(output_shape(graph, node).size()));
  if (!dim) return std::nullopt;
  MaybeMap map = elementwise(graph, node);
  map->whole = {*dim};
  return map;
}

/// layer_norm and rms_norm: over the last dimensions; weight and bias are the same for all others.
MaybeMap norm(const Graph& graph, const Node& node) {
  const auto normalized = integers_at(node, 1);
  const auto x = value_at(node, 0);
  if (!normalized || !x) return std::nullopt;
  const std::vector<Size>& shape = output_shape(graph, node);
  const int num = static_cast<int>(normalized->size()), rank = static_cast<int>(shape.size());
  DimensionMap map;
  for (const ValueId value : graph::input_values(node)) {
    map.inputs.push_back(value == *x ? broadcast(graph, value, shape)
                                     : Input{value, std::vector<int>(shape.size(), -1)});
  }
  for (int dim = rank - num; dim < rank; ++dim) map.whole.push_back(dim);
  return map;
}

/// of_output   dimensions of the first input; further inputs are none.
MaybeMap moved(const Node& node, std::vector<int> of_output) {
  const auto x = value_at(node, 0);
  if (!x) return std::nullopt;
  return DimensionMap{.inputs = {{*x, std::move(of_output)}}};
}

std::vector<int> identity(int rank) {
  std::vector<int> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

MaybeMap transpose(const Graph& graph, const Node& node) {
  std::vector<int> dims = identity(static_cast<int>(output_shape(graph, node).size()));
  const int rank = static_cast<int>(dims.size());
  const auto a = dimension_at(node, 1, rank), b = dimension_at(node, 2, rank);
  if (!a || !b) return std::nullopt;
  std::swap(dims[*a], dims[*b]);
  return moved(node, std::move(dims));
}

MaybeMap transpose_matrix(const Graph& graph, const Node& node) {
  if (output_shape(graph, node).size() != 2) return std::nullopt;
  return moved(node, {1, 0});
}

MaybeMap permute(const Graph& graph, const Node& node) {
  const auto order = integers_at(node, 1);
  const int rank = static_cast<int>(output_shape(graph, node).size());
  if (!order || static_cast<int>(order->size()) != rank) return std::nullopt;
  std::vector<int> dims;
  for (const std::int64_t dim : *order)
    dims.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  return moved(node, std::move(dims));
}

MaybeMap unsqueeze(const Graph& graph, const Node& node) {
  const int rank = static_cast<int>(output_shape(graph, node).size());
  const auto dim = dimension_at(node, 1, rank);
  if (!dim) return std::nullopt;
  std::vector<int> dims = identity(rank - 1);
  dims.insert(dims.begin() + *dim, -1);
  return moved(node, std::move(dims));
}

/// select and unbind: a dimension of the input is not in the output.
MaybeMap take_one(const Graph& graph, const Node& node) {
  const auto x = value_at(node, 0);
  const auto dim = x ? dimension_at(node, 1, rank_of(graph, *x)) : std::nullopt;
  if (!dim) return std::nullopt;
  std::vector<int> dims = identity(rank_of(graph, *x));
  dims.erase(dims.begin() + *dim);
  return moved(node, std::move(dims));
}

/// slice and narrow: along one dimension a part is taken.
MaybeMap take_range(const Graph& graph, const Node& node) {
  const int rank = static_cast<int>(output_shape(graph, node).size());
  const auto dim = dimension_at(node, 1, rank);
  MaybeMap map = moved(node, identity(rank));
  if (!dim || !map) return std::nullopt;
  map->whole = {*dim};
  return map;
}

MaybeMap flip(const Graph& graph, const Node& node) {
  const auto dims = integers_at(node, 1);
  const int rank = static_cast<int>(output_shape(graph, node).size());
  MaybeMap map = moved(node, identity(rank));
  if (!dims || !map) return std::nullopt;
  for (const std::int64_t dim : *dims) {
    map->whole.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  }
  return map;
}

/// Windows along one dimension, whose positions are the last dimension of the output.
MaybeMap unfold(const Graph& graph, const Node& node) {
  const auto x = value_at(node, 0);
  const auto dim = x ? dimension_at(node, 1, rank_of(graph, *x)) : std::nullopt;
  if (!dim) return std::nullopt;
  std::vector<int> dims = identity(rank_of(graph, *x));
  dims.push_back(-1);
  MaybeMap map = moved(node, std::move(dims));
  map->whole = {*dim};
  return map;
}

/// chunk and split in equal parts.
MaybeMap chunks(const Graph& graph, const Node& node) {
  const int rank = static_cast<int>(output_shape(graph, node).size());
  const auto dim = dimension_at(node, 2, rank);
  MaybeMap map = moved(node, identity(rank));
  if (!dim || !map) return std::nullopt;
  for (const ValueId output : node.outputs) {
    if (output < 0 || shape_of(graph, output) != output_shape(graph, node)) return std::nullopt;
  }
  map->chunked_dim = *dim;
  map->num_chunks = static_cast<std::int64_t>(node.outputs.size());
  return map;
}

/// Rows of a table: [entries, width], indices [...] -> [..., width].
MaybeMap embedding(const Graph& graph, const Node& node) {
  const auto table = value_at(node, 0), indices = value_at(node, 1);
  if (!table || !indices) return std::nullopt;
  const int rank = static_cast<int>(output_shape(graph, node).size());
  std::vector<int> rows = identity(rank), columns(rank, -1);
  rows.back() = -1;
  columns.back() = 1;
  DimensionMap map{.inputs = {{*table, columns}, {*indices, rows}}};
  if (is_lookup(node)) map.contraction = {*table, 0, -1, 0};
  return map;
}

/// Of classes alone: losses of rows are made by all shards.
MaybeMap cross_entropy(const Graph& graph, const Node& node) {
  if (!is_cross_entropy(graph, node)) return std::nullopt;
  const std::vector<int> none(output_shape(graph, node).size(), -1);
  return DimensionMap{.inputs = {{*value_at(node, 0), none}, {*value_at(node, 1), none}},
                      .contraction = {{*value_at(node, 0), 1, -1, 0}}};
}

/// [.., M, K] and [.., K, N].
MaybeMap product(const Graph& graph, const Node& node, std::size_t first) {
  const auto left = value_at(node, first), right = value_at(node, first + 1);
  if (!left || !right || *left == *right) return std::nullopt;
  const std::vector<Size>& shape = output_shape(graph, node);
  const int rank = static_cast<int>(shape.size());
  const int left_rank = rank_of(graph, *left), right_rank = rank_of(graph, *right);
  if (left_rank < 2 || right_rank < 2) return std::nullopt;
  Input of_left = leading(graph, *left, shape, 2), of_right = leading(graph, *right, shape, 2);
  of_left.of_output[rank - 2] = left_rank - 2;
  of_right.of_output[rank - 1] = right_rank - 1;
  return DimensionMap{.inputs = {of_left, of_right},
                      .contraction = {{*left, left_rank - 1, *right, right_rank - 2}}};
}

MaybeMap matmul(const Graph& graph, const Node& node) { return product(graph, node, 0); }

/// bias + x w, with both factors 1.
MaybeMap addmm(const Graph& graph, const Node& node) {
  const auto bias = value_at(node, 0);
  MaybeMap map = product(graph, node, 1);
  if (!bias || !map || number_at(node, 3) != 1 || number_at(node, 4) != 1) return std::nullopt;
  map->inputs.push_back(broadcast(graph, *bias, output_shape(graph, node)));
  map->bias = *bias;
  return map;
}

/// x w^T + bias, x [..., K], w [N, K].
MaybeMap linear(const Graph& graph, const Node& node) {
  const auto x = value_at(node, 0), weight = value_at(node, 1), bias = value_at(node, 2);
  const std::vector<Size>& shape = output_shape(graph, node);
  const int rank = static_cast<int>(shape.size());
  if (!x || !weight || *x == *weight || rank == 0 || rank_of(graph, *weight) != 2) {
    return std::nullopt;
  }
  std::vector<int> rows = identity(rank), columns(rank, -1);
  rows.back() = -1;
  columns.back() = 0;
  DimensionMap map{.inputs = {{*x, rows}, {*weight, columns}},
                   .contraction = {{*x, rank - 1, *weight, 1}}};
  if (!bias) return map;
  map.inputs.push_back(broadcast(graph, *bias, shape));
  map.bias = *bias;
  return map;
}

/// Our own attention: query, key, value [.., H, D], lengths, bias [H, L, L]; heads alone are apart.
MaybeMap attention(const Graph& graph, const Node& node) {
  constexpr std::size_t kBias = 4, kDropProbability = 6;
  const int rank = static_cast<int>(output_shape(graph, node).size());
  if (number_at(node, kDropProbability) != 0) return std::nullopt;
  DimensionMap map;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto value = value_at(node, i);
    if (!value || rank_of(graph, *value) != rank) return std::nullopt;
    map.inputs.push_back({*value, identity(rank)});
  }
  for (const std::size_t i : {std::size_t{3}, kBias}) {
    const auto value = value_at(node, i);
    if (!value) continue;
    std::vector<int> dims(rank, -1);
    if (i == kBias) dims[rank - 2] = 0;
    map.inputs.push_back({*value, std::move(dims)});
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (dim != rank - 2) map.whole.push_back(dim);
  }
  return map;
}

/// Torch's: query [.., T, D], key and value [.., S, D], mask [.., T, S]; without dropout and shared heads of keys.
MaybeMap scaled_dot_product_attention(const Graph& graph, const Node& node) {
  constexpr std::size_t kDropProbability = 4, kSharesHeads = 7;
  const std::vector<Size>& shape = output_shape(graph, node);
  const int rank = static_cast<int>(shape.size());
  const auto* shares = node.inputs.size() > kSharesHeads
                           ? std::get_if<bool>(&node.inputs[kSharesHeads].content)
                           : nullptr;
  if (number_at(node, kDropProbability) != 0 || shares == nullptr || *shares || rank < 3) {
    return std::nullopt;
  }
  DimensionMap map{.inputs = {}, .whole = {rank - 2, rank - 1}};
  for (const ValueId value : graph::input_values(node)) {
    map.inputs.push_back(leading(graph, value, shape, 2));
  }
  return map;
}

using Rule = MaybeMap (*)(const Graph& graph, const Node& node);

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> kTable = [] {
    std::map<std::string_view, Rule> rules = {
        {"aten::dropout", dropout},
        {"aten::softmax", softmax},
        {"aten::log_softmax", softmax},
        {"aten::layer_norm", norm},
        {"aten::rms_norm", norm},
        {"aten::transpose", transpose},
        {"aten::t", transpose_matrix},
        {"aten::permute", permute},
        {"aten::unsqueeze", unsqueeze},
        {"aten::select", take_one},
        {"aten::unbind", take_one},
        {"aten::slice", take_range},
        {"aten::narrow", take_range},
        {"aten::flip", flip},
        {"aten::unfold", unfold},
        {"aten::chunk", chunks},
        {"aten::split", chunks},
        {"aten::embedding", embedding},
        {"aten::cross_entropy_loss", cross_entropy},
        {"aten::matmul", matmul},
        {"aten::mm", matmul},
        {"aten::bmm", matmul},
        {"aten::addmm", addmm},
        {"aten::linear", linear},
        {"trireme::attention", attention},
        {"trireme::packed_attention", attention},
        {"aten::scaled_dot_product_attention", scaled_dot_product_attention},
    };
    for (const std::string_view op : elementwise_operators()) {
      rules.emplace(op, elementwise);
    }
    return rules;
  }();
  return kTable;
}

}  // namespace

std::string_view plain_operator(const Node& node) {
  std::string_view op = node.op;
  if (op.ends_with('_')) op.remove_suffix(1);
  return op;
}

bool is_dropout(const Node& node) { return node.op == "aten::dropout"; }

bool is_reshape(const Node& node) {
  static const std::set<std::string_view> kOperators = {
      "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::flatten", "aten::unflatten"};
  return kOperators.contains(node.op) && value_at(node, 0);
}

std::optional<DimensionMap> dimension_map(const Graph& graph, const Node& node) {
  const auto rule = rules().find(plain_operator(node));
  if (rule == rules().end() || node.outputs.empty() || node.outputs.front() < 0)
    return std::nullopt;
  return rule->second(graph, node);
}

}  // namespace trireme::sharding
