#include "trireme/plan/sharding/sharded_graph.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/node_splits.h"
#include "trireme/plan/sharding/node_writer.h"
#include "trireme/plan/sharding/part_values.h"
#include "trireme/plan/sharding/tiled_graph.h"
#include "trireme/plan/sharding/tiles.h"
#include "trireme/plan/sharding/vocabulary_nodes.h"

namespace trireme::sharding {
namespace {

using graph::ArgumentList;
using graph::Graph;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;
using graph::ValueRef;
using Ids = PartValues::Ids;

/// Writes the graph of a range of shards, node after node.
class Writer {
 public:
  Writer(const Graph& graph, const Sharding& sharding, ShardRange range)
      : graph_(graph), sharding_(sharding), range_(range), values_(graph, sharding, range) {}

  ShardedGraph run() {
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i) add_parameter(static_cast<int>(i));
    for (const Node& node : graph_.nodes) {
      if (is_of_split(node)) {
        add_split(node);
      } else {
        add_node(node);
      }
      values_.forget_written(node);
    }
    return {std::move(values_.graph()), std::move(parts_), {}};
  }

 private:
  bool is_of_split(const Node& node) const {
    const auto is_split = [&](ValueId id) { return sharding_.splits.contains(id); };
    const Ids inputs = graph::input_values(node);
    return std::ranges::any_of(inputs, is_split) || std::ranges::any_of(node.outputs, is_split);
  }

  void add_parameter(int index) {
    const graph::Parameter& parameter = graph_.parameters[index];
    if (!sharding_.splits.contains(parameter.value)) {
      values_.graph().parameters.push_back(parameter);
      return;
    }
    const Ids values = values_.parts_of(parameter.value);
    for (int local = 0; local < range_.count; ++local) {
      const int shard = values_.shard(local);
      graph::Parameter part = parameter;
      part.value = values[local];
      part.name = part_name(parameter.name, shard, sharding_.num_shards);
      for (std::string& alias : part.aliases) {
        alias = part_name(alias, shard, sharding_.num_shards);
      }
      parts_.push_back({part.name, part.value, index, shard});
      values_.graph().parameters.push_back(std::move(part));
    }
  }

  void add_node(Node node) { values_.graph().nodes.push_back(std::move(node)); }

  void set_producer(ValueId id, graph::NodeId producer) { values_.value(id).producer = producer; }

  /// By value among the node's inputs: what each shard takes in its place.
  std::map<ValueId, Ids> taken_by(const Node& node, const NodeSplits& splits) {
    std::map<ValueId, Ids> taken;
    for (const ValueId id : graph::input_values(node)) {
      const auto split = splits.values.find(id);
      if (sharding_.splits.contains(id)) {
        taken[id] = values_.parts_of(id);
      } else if (split != splits.values.end()) {
        taken[id] = values_.sliced(id, split->second, node);
      } else if (graph_.values[id].requires_grad && node.flags.grad_mode) {
        taken[id] = values_.given(id, node);
      }
    }
    return taken;
  }

  void add_split(const Node& node) {
    const auto splits = node_splits(graph_, node, sharding_.splits, sharding_.num_shards);
    if (!splits || !is_closed(node, *splits)) refuse(node);
    if (is_dropout(node) && node.flags.random) return add_dropout(node, *splits);
    if (splits->is_sum && is_cross_entropy(graph_, node)) {
      return add_cross_entropy(values_, node, values_.parts_of(*value_at(node, 0)));
    }
    if (splits->is_sum) return add_sum(node, *splits);
    const auto taken = taken_by(node, *splits);
    Node shard = node;
    make_local(shard, graph_, *splits, sharding_.num_shards);
    for (int local = 0; local < range_.count; ++local) {
      Node clone = values_.clone_of(shard, taken, local);
      for (ValueId& id : clone.outputs) {
        const bool is_made = graph_.values[id].producer == node.id;
        id = values_.parts_of(id)[local];
        if (is_made) set_producer(id, clone.id);
      }
      add_node(std::move(clone));
    }
  }

  /// Whether all is split that has to be: what the node makes, and what a gradient goes back to.
  bool is_closed(const Node& node, const NodeSplits& splits) const {
    return std::ranges::all_of(splits.values, [&](const auto& item) {
      const ValueId id = item.first;
      const bool is_made = std::ranges::find(node.outputs, id) != node.outputs.end();
      return sharding_.splits.contains(id) || (!is_made && !graph_.values[id].requires_grad);
    });
  }

  void add_dropout(const Node& node, const NodeSplits& splits) {
    const ValueId x = *value_at(node, 0), output = node.outputs.front();
    const Ids inputs = values_.parts_of(x), outputs = values_.parts_of(output);
    const ValueId mask = add_mask(node);
    for (int local = 0; local < range_.count; ++local) {
      const ValueId part = part_of_mask(node, mask, splits.values.at(output), local);
      Node product{.id = values_.fresh_node(),
                   .name = node.name,
                   .op = "aten::mul",
                   .overload = "Tensor",
                   .inputs = {{ValueRef{inputs[local]}}, {ValueRef{part}}},
                   .outputs = {outputs[local]},
                   .output_lists = {-1},
                   .writes = {},
                   .flags = {.grad_mode = node.flags.grad_mode},
                   .autocast = node.autocast};
      set_producer(outputs[local], product.id);
      add_node(std::move(product));
    }
  }

  /// The mask of the whole, scaled: the dropout of ones, with the node's id and so its stream.
  ValueId add_mask(const Node& node) {
    const ValueId x = *value_at(node, 0);
    Value like_x = graph_.values[x];
    like_x.requires_grad = false;
    ArgumentList shape;
    for (const Size& size : like_x.shape) shape.push_back({size});
    Node drawn = node;
    drawn.flags.grad_mode = false;
    const ValueId ones = values_.add_made(
        drawn, "aten::ones",
        {{std::move(shape)}, {like_x.dtype}, {}, {graph::DeviceName{"cpu"}}, {}}, like_x);
    values_.graph().nodes.back().flags.batch_dependent =
        !std::ranges::all_of(like_x.shape, &Size::is_fixed);
    like_x.source = graph::ValueSource::kNode;
    like_x.producer = node.id;
    like_x.storage_id = values_.fresh_storage();
    const ValueId mask = values_.add_value(std::move(like_x));
    drawn.inputs.front() = {ValueRef{ones}};
    drawn.outputs = {mask};
    add_node(std::move(drawn));
    return mask;
  }

  /// A shard's part of a mask, block by block.
  ValueId part_of_mask(const Node& node, ValueId mask, TensorSplit split, int local) {
    Node like = node;
    like.flags.grad_mode = false;
    Value part = values_.value(mask);
    const std::int64_t block = part.shape[split.dim].fixed / split.blocks;
    const std::int64_t extent = block / sharding_.num_shards;
    part.shape[split.dim].fixed = extent;
    ArgumentList blocks;
    for (std::int64_t b = 0; b < split.blocks; ++b) {
      const std::int64_t begin = b * block + extent * values_.shard(local);
      blocks.push_back({ValueRef{values_.add_slice(like, mask, split.dim, begin, part)}});
    }
    if (split.blocks == 1) return std::get<ValueRef>(blocks.front().content).value;
    part.shape[split.dim].fixed = extent * split.blocks;
    return values_.add_made(like, "aten::cat", {{std::move(blocks)}, integer(split.dim)}, part);
  }

  /// What the shards here have of a lookup in a table of which each has rows.
  Ids partial_rows(const Node& node) {
    const Ids tables = values_.parts_of(*value_at(node, 0));
    Ids partial;
    for (int local = 0; local < range_.count; ++local) {
      partial.push_back(add_lookup(values_, node, tables[local], local));
    }
    return partial;
  }

  Ids partial_products(const Node& product, const NodeSplits& splits) {
    const ValueId output = product.outputs.front();
    const auto taken = taken_by(product, splits);
    Ids partial;
    for (int local = 0; local < range_.count; ++local) {
      Node clone = values_.clone_of(product, taken, local);
      Value part = graph_.values[output];
      part.producer = clone.id;
      part.storage_id = values_.fresh_storage();
      partial.push_back(values_.add_value(std::move(part)));
      clone.outputs = {partial.back()};
      add_node(std::move(clone));
    }
    return partial;
  }

  void add_sum(const Node& node, const NodeSplits& splits) {
    const ValueId output = node.outputs.front();
    const ValueId bias = dimension_map(graph_, node)->bias;
    Node product = node;
    if (bias >= 0) remove_bias(product);
    const Ids partial = is_lookup(node) ? partial_rows(node) : partial_products(product, splits);
    Value whole = graph_.values[output];
    whole.storage_id = values_.fresh_storage();
    const ValueId sum = bias < 0 ? output : values_.add_value(std::move(whole));
    Node& adding = values_.add_opaque(node, kSumOfShards, partial);
    adding.output_lists = {1};
    adding.outputs = {sum};
    set_producer(sum, adding.id);
    if (bias >= 0) add_bias(node, sum, bias);
  }

  static void remove_bias(Node& product) {
    if (product.op == "aten::linear") {
      product.inputs[2] = {};
    } else {
      product.op = "aten::mm";
      product.inputs = {product.inputs[1], product.inputs[2]};
    }
  }

  /// Under autocast in the type of the product, as the product itself would.
  void add_bias(const Node& node, ValueId sum, ValueId bias) {
    const ValueId output = node.outputs.front();
    const Dtype dtype = graph_.values[output].dtype;
    if (graph_.values[bias].dtype != dtype) {
      Value cast = graph_.values[bias];
      cast.dtype = dtype;
      bias = values_.add_made(node, "aten::to", {{ValueRef{bias}}, {dtype}, {false}, {false}, {}},
                              cast);
      values_.graph().nodes.back().overload = "dtype";
    }
    Node added{.id = values_.fresh_node(),
               .name = node.name + "/bias",
               .op = "aten::add",
               .overload = "Tensor",
               .inputs = {{ValueRef{sum}}, {ValueRef{bias}}, integer(1)},
               .outputs = {output},
               .output_lists = {-1},
               .writes = {},
               .flags = {.grad_mode = node.flags.grad_mode},
               .autocast = node.autocast};
    set_producer(output, added.id);
    add_node(std::move(added));
  }

  [[noreturn]] static void refuse(const Node& node) {
    throw Error(ErrorKind::kInvalidArgument,
                "node " + std::to_string(node.id) + " '" + node.name +
                    "' cannot run in shards as the sharding has it; find it for this graph");
  }

  const Graph& graph_;
  const Sharding& sharding_;
  ShardRange range_;
  PartValues values_;
  std::vector<ParameterPart> parts_;
};

}  // namespace

std::string part_name(const std::string& name, int shard, int num_shards) {
  return name + "[" + std::to_string(shard) + "/" + std::to_string(num_shards) + "]";
}

void check(const Sharding& sharding, const Graph& graph) {
  const std::string sha256 = graph::graph_sha256(graph);
  if (sharding.graph_sha256 != sha256) {
    throw Error(ErrorKind::kInvalidArgument,
                "the sharding is of graph " + sharding.graph_sha256.substr(0, 12) +
                    ", this one is " + sha256.substr(0, 12) + "; find it for this graph");
  }
  const auto can_be = [&](graph::ValueId value, TensorSplit split) {
    if (value < 0 || value >= std::ssize(graph.values)) return false;
    const auto& shape = graph.values[value].shape;
    return sharding.kind == SplitKind::kTiles
               ? split.blocks == 1 && can_tile(shape, split.dim, sharding.num_shards)
               : can_split(shape, split, sharding.num_shards);
  };
  for (const auto& [value, split] : sharding.splits) {
    if (can_be(value, split)) continue;
    throw Error(ErrorKind::kInvalidArgument, "value " + std::to_string(value) +
                                                 " cannot be split as the sharding has it; find "
                                                 "it for this graph");
  }
}

ShardedGraph sharded_graph(const Graph& graph, const Sharding& sharding, ShardRange range) {
  if (range.first < 0 || range.count < 1 || range.first + range.count > sharding.num_shards) {
    throw Error(ErrorKind::kInvalidArgument, "shards " + std::to_string(range.first) + " to " +
                                                 std::to_string(range.first + range.count) +
                                                 " are not within 0 to " +
                                                 std::to_string(sharding.num_shards));
  }
  check(sharding, graph);
  if (sharding.splits.empty()) return {graph, {}, {}};
  if (sharding.kind == SplitKind::kTiles) return tiled_graph(graph, sharding, range);
  ShardedGraph result = Writer(graph, sharding, range).run();
  for (const Graph& other : graph.shorter) {
    result.graph.shorter.push_back(Writer(other, sharding, range).run().graph);
  }
  graph::check(result.graph);
  return result;
}

}  // namespace trireme::sharding
