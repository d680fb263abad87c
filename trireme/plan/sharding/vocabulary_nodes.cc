// Letters: N rows, V classes of a shard.

#include "trireme/plan/sharding/vocabulary_nodes.h"

#include <cstdint>
#include <utility>

#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/node_writer.h"
#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::sharding {
namespace {

using graph::ArgumentList;
using graph::Graph;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;
using Ids = PartValues::Ids;

constexpr std::size_t kPadding = 2, kScalesByCount = 3, kIsSparse = 4;
constexpr std::size_t kClasses = 1, kClassWeights = 2, kReduction = 3, kIgnored = 4, kSmoothing = 5;
constexpr std::int64_t kMean = 1, kSum = 2;  // torch's Reduction

bool is_none(const Node& node, std::size_t index) {
  return index < node.inputs.size() &&
         std::holds_alternative<std::monostate>(node.inputs[index].content);
}

/// Entries by their place in a shard, 0 where another shard has them.
struct LocalEntries {
  ValueId place = -1;
  ValueId is_elsewhere = -1;
};

/// Entries that no shard has are left to the first or last one, where what takes them fails as in the whole model.
///
/// range       entries of this shard, of `num_entries`.
/// is_nobodys  of entries that no shard looks at; -1: there are none.
LocalEntries local_entries(NodeWriter& writer, ValueId entries, RowRange range,
                           std::int64_t num_entries, ValueId is_nobodys) {
  const std::vector<Size> shape = writer.value(entries).shape;
  const ValueId place = writer.add_like(
      "aten::sub.Scalar", {tensor(entries), integer(range.begin), integer(1)}, entries);
  Ids reasons;
  if (range.begin > 0) {
    reasons.push_back(
        writer.add("aten::lt.Scalar", {tensor(place), integer(0)}, shape, Dtype::kBool));
  }
  if (range.end < num_entries) {
    reasons.push_back(
        writer.add("aten::ge.Scalar", {tensor(place), integer(range.size())}, shape, Dtype::kBool));
  }
  if (is_nobodys >= 0) reasons.push_back(is_nobodys);
  ValueId is_elsewhere = reasons.front();
  for (std::size_t i = 1; i < reasons.size(); ++i) {
    is_elsewhere = writer.add_like("aten::logical_or", {tensor(is_elsewhere), tensor(reasons[i])},
                                   is_elsewhere);
  }
  const ValueId held = writer.add_like("aten::masked_fill.Scalar",
                                       {tensor(place), tensor(is_elsewhere), integer(0)}, place);
  return {held, is_elsewhere};
}

std::vector<Size> without(std::vector<Size> shape, std::size_t dim) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return shape;
}

/// Along dimension 1 of every part, less the maximum over all shards: [N, V, ...].
Ids add_shifted(NodeWriter& writer, const Node& node, const Ids& logits) {
  Ids rows, largest;
  for (const ValueId part : logits) rows.push_back(writer.in_f32(part));
  writer.set_grad_mode(false);
  for (const ValueId row : rows) {
    std::vector<Size> shape = writer.value(row).shape;
    shape[1] = {0, 1};
    largest.push_back(
        writer.add("aten::amax", {tensor(row), integers({1}), {true}}, shape, Dtype::kF32));
  }
  const ValueId most = writer.add_over_shards(kMaximumOfShards, largest);
  writer.set_grad_mode(node.flags.grad_mode);
  for (ValueId& row : rows) {
    row = writer.add_like("aten::sub.Tensor", {tensor(row), tensor(most), integer(1)}, row);
  }
  return rows;
}

/// Classes, and which of them are ignored.
struct Classes {
  ValueId values = -1;
  ValueId is_ignored = -1;
  std::int64_t count = 0;  ///< Of all shards.
};

/// Of a shard the sum of exponentials and what it has at the class: [2, N, ...].
ValueId add_partial(NodeWriter& writer, ValueId shifted, const Classes& classes, RowRange range) {
  const std::vector<Size> shape = writer.value(shifted).shape;
  std::vector<Size> of_rows = without(shape, 1), one_class = shape;
  one_class[1] = {0, 1};
  const ValueId raised = writer.add_like("aten::exp", {tensor(shifted)}, shifted);
  const ValueId sum = writer.add(
      "aten::sum.dim_IntList", {tensor(raised), integers({1}), {false}, {}}, of_rows, Dtype::kF32);
  const LocalEntries at =
      local_entries(writer, classes.values, range, classes.count, classes.is_ignored);
  const ValueId column = writer.add("aten::unsqueeze", {tensor(at.place), integer(1)}, one_class,
                                    writer.value(at.place).dtype);
  ValueId chosen =
      writer.add("aten::gather", {tensor(shifted), integer(1), tensor(column), {false}}, one_class,
                 Dtype::kF32);
  chosen = writer.add("aten::squeeze.dim", {tensor(chosen), integer(1)}, of_rows, Dtype::kF32);
  chosen = writer.add_like("aten::masked_fill.Scalar",
                           {tensor(chosen), tensor(at.is_elsewhere), integer(0)}, chosen);
  of_rows.insert(of_rows.begin(), {0, 2});
  return writer.add("aten::stack", {{ArgumentList{tensor(sum), tensor(chosen)}}, integer(0)},
                    of_rows, Dtype::kF32);
}

/// [N, ...] -> what the node makes of losses, 0 where a class is ignored.
void add_reduced(NodeWriter& writer, const Node& node, ValueId losses, const Classes& classes) {
  const ValueId output = node.outputs.front();
  const std::int64_t reduction = *integer_at(node, kReduction);
  const bool is_f32 = writer.value(output).dtype == Dtype::kF32;
  const auto finish = [&](const std::string& op, ArgumentList inputs) {
    if (is_f32) return writer.add_onto(output, op, std::move(inputs));
    const ValueId made = writer.add(op, std::move(inputs), writer.value(output).shape, Dtype::kF32);
    writer.add_onto(output, "aten::to.dtype",
                    {tensor(made), {writer.value(output).dtype}, {false}, {false}, {}});
  };
  const ArgumentList masked = {tensor(losses), tensor(classes.is_ignored), integer(0)};
  if (reduction != kMean && reduction != kSum) return finish("aten::masked_fill.Scalar", masked);
  const ValueId left = writer.add_like("aten::masked_fill.Scalar", masked, losses);
  if (reduction == kSum) return finish("aten::sum", {tensor(left), {}});
  const ValueId sum = writer.add("aten::sum", {tensor(left), {}}, {}, Dtype::kF32);
  const ValueId counts =
      writer.add_like("aten::logical_not", {tensor(classes.is_ignored)}, classes.is_ignored);
  const ValueId count = writer.add("aten::sum", {tensor(counts), {Dtype::kF32}}, {}, Dtype::kF32);
  finish("aten::div.Tensor", {tensor(sum), tensor(count)});
}

}  // namespace

bool is_lookup(const Node& node) {
  return node.op == "aten::embedding" && value_at(node, 0) && value_at(node, 1) &&
         integer_at(node, kPadding) && !bool_at(node, kScalesByCount).value_or(true) &&
         !bool_at(node, kIsSparse).value_or(true);
}

bool is_cross_entropy(const Graph& graph, const Node& node) {
  if (node.op != "aten::cross_entropy_loss" || !integer_at(node, kReduction)) return false;
  const auto logits = value_at(node, 0), classes = value_at(node, kClasses);
  if (!logits || !classes || !integer_at(node, kIgnored)) return false;
  if (graph.values[*logits].dtype == Dtype::kF64) return false;
  return graph.values[*classes].dtype == Dtype::kI64 && graph.values[*logits].shape.size() >= 2 &&
         graph.values[*classes].shape.size() + 1 == graph.values[*logits].shape.size() &&
         is_none(node, kClassWeights) && number_at(node, kSmoothing) == 0;
}

ValueId add_lookup(PartValues& values, const Node& node, ValueId table, int local) {
  NodeWriter writer(values, node);
  const std::int64_t count = values.value(table).shape.front().fixed;
  const std::int64_t first = count * values.shard(local);
  const ValueId entries = *value_at(node, 1);
  const LocalEntries at =
      local_entries(writer, entries, {first, first + count},
                    values.whole().values[*value_at(node, 0)].shape[0].fixed, -1);
  const std::int64_t padding = *integer_at(node, kPadding) - first;
  const bool has_padding = padding >= 0 && padding < count;
  const std::vector<Size> shape = values.value(node.outputs.front()).shape;
  const Dtype dtype = values.value(table).dtype;
  const ValueId rows = writer.add(
      "aten::embedding",
      {tensor(table), tensor(at.place), integer(has_padding ? padding : -1), {false}, {false}},
      shape, dtype);
  std::vector<Size> mask = values.value(entries).shape;
  mask.push_back({0, 1});
  const ValueId column =
      writer.add("aten::unsqueeze", {tensor(at.is_elsewhere), integer(-1)}, mask, Dtype::kBool);
  return writer.add("aten::masked_fill.Scalar", {tensor(rows), tensor(column), integer(0)}, shape,
                    dtype);
}

void add_cross_entropy(PartValues& values, const Node& node, const Ids& logits) {
  NodeWriter writer(values, node);
  const ValueId labels = *value_at(node, kClasses);
  const Classes classes = {labels,
                           writer.add("aten::eq.Scalar", {tensor(labels), node.inputs[kIgnored]},
                                      writer.value(labels).shape, Dtype::kBool),
                           values.whole().values[*value_at(node, 0)].shape[1].fixed};
  Ids partial;
  const Ids shifted = add_shifted(writer, node, logits);
  for (int local = 0; local < std::ssize(shifted); ++local) {
    const std::int64_t count = values.value(shifted[local]).shape[1].fixed;
    const std::int64_t first = count * values.shard(local);
    partial.push_back(add_partial(writer, shifted[local], classes, {first, first + count}));
  }
  const ValueId both = writer.add_over_shards(kSumOfShards, partial);
  const std::vector<Size> of_rows = without(writer.value(both).shape, 0);
  const auto half = [&](std::int64_t index) {
    return writer.add("aten::select.int", {tensor(both), integer(0), integer(index)}, of_rows,
                      Dtype::kF32);
  };
  const ValueId sum = half(0), chosen = half(1);
  const ValueId log_sum = writer.add_like("aten::log", {tensor(sum)}, sum);
  const ValueId losses =
      writer.add_like("aten::sub.Tensor", {tensor(log_sum), tensor(chosen), integer(1)}, log_sum);
  add_reduced(writer, node, losses, classes);
}

}  // namespace trireme::sharding
