#include "trireme/plan/sharding/tiled_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/node_writer.h"
#include "trireme/plan/sharding/part_values.h"
#include "trireme/plan/sharding/sizes.h"
#include "trireme/plan/sharding/tile_rules.h"
#include "trireme/plan/sharding/tiled_norm.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::Size;
using graph::Value;
using graph::ValueId;
using Ids = PartValues::Ids;
using Taken = std::map<ValueId, Ids>;

class TileWriter {
 public:
  TileWriter(const Graph& graph, const Sharding& sharding, ShardRange range)
      : graph_(graph), sharding_(sharding), range_(range), values_(graph, sharding, range) {}

  ShardedGraph run() {
    values_.graph().parameters = graph_.parameters;
    for (const Node& node : graph_.nodes) {
      add(node);
      forget_written(node);
    }
    return {std::move(values_.graph()), {}, std::move(halos_)};
  }

 private:
  bool is_split(ValueId id) const { return sharding_.splits.contains(id); }

  void add(const Node& node) {
    const bool makes_split =
        std::ranges::any_of(node.outputs, [&](ValueId id) { return is_split(id); });
    const auto rule = tile_rule(graph_, node, sharding_.splits, sharding_.num_shards);
    if (makes_split) {
      const bool is_as_split =
          rule && rule->output_dim >= 0 && std::ranges::all_of(node.outputs, [&](ValueId id) {
            const auto split = sharding_.splits.find(id);
            return split != sharding_.splits.end() &&
                   split->second == TensorSplit{rule->output_dim, 1};
          });
      if (!is_as_split) refuse(node);
    }
    if (!rule || (!makes_split && rule->output_dim >= 0)) return add_whole(node);
    if (rule->kind == TileKind::kWindow) return add_window(node, *rule);
    const Taken taken = taken_by(node, *rule);
    if (rule->kind == TileKind::kSum) return add_sum(node, *rule, taken);
    if (rule->kind == TileKind::kLoss) return add_loss(node, taken);
    if (rule->kind == TileKind::kNorm) {
      return add_tiled_norm(values_, node, *rule, tiles_of_norm(node, taken));
    }
    for (int local = 0; local < range_.count; ++local) add_clone(node, taken, local);
  }

  NormTiles tiles_of_norm(const Node& node, const Taken& taken) {
    const int at = norm_positions(node)->residual;
    const ValueId residual =
        at < 0 ? -1 : value_at(node, static_cast<std::size_t>(at)).value_or(-1);
    return {taken.at(*value_at(node, 0)), residual < 0 ? Ids() : taken.at(residual),
            values_.parts_of(node.outputs.front())};
  }

  /// On split values put together.
  void add_whole(const Node& node) {
    Taken taken;
    for (const ValueId id : graph::input_values(node)) {
      if (!is_split(id)) continue;
      if (std::ranges::find(node.writes, id) != node.writes.end()) refuse(node);
      taken[id] = {put_together(id, node)};
    }
    values_.graph().nodes.push_back(values_.clone_of(node, taken, 0));
  }

  void add_clone(const Node& node, const Taken& taken, int local) {
    Node clone = values_.clone_of(node, taken, local);
    for (ValueId& id : clone.outputs) {
      const bool is_made = graph_.values[id].producer == node.id;
      id = values_.parts_of(id)[local];
      if (is_made) values_.value(id).producer = clone.id;
    }
    values_.graph().nodes.push_back(std::move(clone));
  }

  std::int64_t extent_of(ValueId id, int dim) const { return graph_.values[id].shape[dim].fixed; }

  /// What each shard takes of the node's inputs: rows of its tile, or all. What a norm has beside is taken later (tiled_norm.h).
  Taken taken_by(const Node& node, const TileRule& rule) {
    Taken taken;
    for (const ValueId id : graph::input_values(node)) {
      const auto rows = rule.inputs.find(id);
      if (rows != rule.inputs.end()) {
        const int dim = rows->second;
        taken[id] = rows_of(id, dim, all_tiles(extent_of(id, dim), sharding_.num_shards), node);
      } else if (rule.kind != TileKind::kNorm && needs_gradient(id, node)) {
        taken[id] = values_.given(id, node);
      }
    }
    return taken;
  }

  bool needs_gradient(ValueId id, const Node& node) const {
    return graph_.values[id].requires_grad && node.flags.grad_mode;
  }

  /// Rows of a value for each shard here.
  ///
  /// wanted   by shard of all, within the extent.
  Ids rows_of(ValueId id, int dim, const std::vector<RowRange>& wanted, const Node& node) {
    const std::int64_t extent = extent_of(id, dim);
    if (is_split(id)) {
      const bool is_own = wanted == all_tiles(extent, sharding_.num_shards);
      return is_own ? values_.parts_of(id) : exchange(id, dim, wanted, node);
    }
    Ids rows;
    NodeWriter writer(values_, node);
    const Ids whole = needs_gradient(id, node) ? values_.given(id, node) : Ids(range_.count, id);
    for (int local = 0; local < range_.count; ++local) {
      rows.push_back(writer.add_rows(whole[local], dim, wanted[values_.shard(local)]));
    }
    return rows;
  }

  /// Tiles with rows of other shards.
  Ids exchange(ValueId id, int dim, const std::vector<RowRange>& wanted, const Node& node) {
    HaloExchange halo{.name = {}, .dim = dim, .extent = extent_of(id, dim), .wanted = wanted};
    const auto known = std::ranges::find_if(halos_, [&](const HaloExchange& other) {
      halo.name = other.name;
      return halo == other;
    });
    if (known == halos_.end()) {
      halo.name = "halo of shards " + std::to_string(halos_.size());
      halos_.push_back(halo);
    }
    const Ids tiles = values_.parts_of(id);
    Node& call = values_.add_opaque(node, halo.name, tiles);
    call.flags.grad_mode = true;
    call.output_lists = {range_.count};
    const graph::NodeId producer = call.id;
    Ids outputs;
    for (int local = 0; local < range_.count; ++local) {
      Value rows = values_.value(tiles[local]);
      set_rows(rows, dim, wanted[values_.shard(local)].size());
      rows.source = graph::ValueSource::kNode;
      rows.producer = producer;
      rows.storage_id = values_.fresh_storage();
      outputs.push_back(values_.add_value(std::move(rows)));
    }
    values_.graph().nodes.back().outputs = outputs;
    return outputs;
  }

  void add_window(const Node& node, const TileRule& rule) {
    const ValueId x = *value_at(node, 0), y = node.outputs.front();
    const std::int64_t extent = extent_of(x, kRowDim);
    std::vector<WindowRows> rows;
    std::vector<RowRange> wanted;
    for (const RowRange tile : all_tiles(extent_of(y, kRowDim), sharding_.num_shards)) {
      rows.push_back(*rows_for(rule.window, tile, extent));
      wanted.push_back(overlap(rows.back().input, {0, extent}));
    }
    Taken taken;
    for (const ValueId id : graph::input_values(node)) {
      if (id != x && needs_gradient(id, node)) taken[id] = values_.given(id, node);
    }
    taken[x] = rows_of(x, kRowDim, wanted, node);
    NodeWriter writer(values_, node);
    for (int local = 0; local < range_.count; ++local) {
      const WindowRows& of_shard = rows[values_.shard(local)];
      const RowRange inside = wanted[values_.shard(local)];
      ValueId& input = taken[x][local];
      input = writer.add_padding(
          input, kRowDim, {inside.begin - of_shard.input.begin, of_shard.input.end - inside.end},
          rule.window.fill);
      add_window_of(node, taken, local, of_shard);
    }
  }

  void add_window_of(const Node& node, const Taken& taken, int local, const WindowRows& rows) {
    const ValueId part = values_.parts_of(node.outputs.front())[local];
    Node clone = values_.clone_of(node, taken, local);
    make_unpadded(clone, rows.num_made);
    Value made = values_.value(part);
    const std::int64_t num_wanted = made.shape[kRowDim].fixed;
    values_.value(part).producer = clone.id;
    clone.outputs = {part};
    if (num_wanted == rows.num_made) {
      values_.graph().nodes.push_back(std::move(clone));
      return;
    }
    set_rows(made, kRowDim, rows.num_made);
    made.producer = clone.id;
    made.storage_id = values_.fresh_storage();
    const ValueId all = values_.add_value(std::move(made));
    clone.outputs = {all};
    values_.graph().nodes.push_back(std::move(clone));
    NodeWriter writer(values_, node);
    const ValueId cut = writer.add_rows(all, kRowDim, {rows.skipped, rows.skipped + num_wanted});
    writer.add_onto(part, "aten::clone", {tensor(cut), {}});
  }

  void add_sum(const Node& node, const TileRule& rule, const Taken& taken) {
    const ValueId x = *value_at(node, 0), y = node.outputs.front();
    NodeWriter writer(values_, node);
    const bool keeps = graph_.values[x].shape.size() == graph_.values[y].shape.size();
    Ids partial;
    for (const ValueId tile : taken.at(x)) {
      partial.push_back(
          writer.add("aten::sum.dim_IntList",
                     {tensor(tile), integers({rule.over.begin(), rule.over.end()}), {keeps}, {}},
                     graph_.values[y].shape, Dtype::kF32));
    }
    const ValueId sum = writer.add_over_shards(kSumOfShards, partial);
    Size count{0, 1};
    for (const int dim : rule.over) count = times(count, graph_.values[x].shape[dim]);
    writer.add_onto(y, "aten::div.Scalar", {tensor(sum), {rule.is_mean ? count : Size{0, 1}}});
  }

  /// Sums of the tiles' losses, over all shards; of a mean by the number of pixels whose class is not ignored.
  void add_loss(const Node& node, const Taken& taken) {
    constexpr std::size_t kReduction = 3, kIgnored = 4;
    constexpr std::int64_t kMean = 1, kSumAll = 2;  // torch's Reduction
    const ValueId y = node.outputs.front(), classes = *value_at(node, 1);
    Ids partial;
    for (int local = 0; local < range_.count; ++local) {
      Node clone = values_.clone_of(node, taken, local);
      clone.inputs[kReduction] = integer(kSumAll);
      Value sum = graph_.values[y];
      sum.producer = clone.id;
      sum.storage_id = values_.fresh_storage();
      partial.push_back(values_.add_value(std::move(sum)));
      clone.outputs = {partial.back()};
      values_.graph().nodes.push_back(std::move(clone));
    }
    NodeWriter writer(values_, node);
    const ValueId sum = writer.add_over_shards(kSumOfShards, partial);
    if (integer_at(node, kReduction) != kMean) {
      return writer.add_onto(y, "aten::div.Scalar", {tensor(sum), integer(1)});
    }
    const ValueId counts = writer.add("aten::ne.Scalar", {tensor(classes), node.inputs[kIgnored]},
                                      graph_.values[classes].shape, Dtype::kBool);
    const ValueId count = writer.add("aten::sum", {tensor(counts), {Dtype::kF32}}, {}, Dtype::kF32);
    writer.add_onto(y, "aten::div.Tensor", {tensor(sum), tensor(count)});
  }

  /// The whole of a split value, on every rank: tiles within zeros, summed.
  ValueId put_together(ValueId id, const Node& taker) {
    const auto found = whole_.find(id);
    if (found != whole_.end()) return found->second;
    NodeWriter writer(values_, taker);
    writer.set_grad_mode(true);
    const int dim = sharding_.splits.at(id).dim;
    const std::int64_t extent = extent_of(id, dim);
    Ids padded = values_.parts_of(id);
    for (int local = 0; local < range_.count; ++local) {
      const RowRange tile = tile_rows(extent, sharding_.num_shards, values_.shard(local));
      padded[local] = writer.add_padding(padded[local], dim, {tile.begin, extent - tile.end}, 0);
    }
    return whole_[id] = writer.add_over_shards(kSumOfShards, padded);
  }

  void forget_written(const Node& node) {
    values_.forget_written(node);
    for (const ValueId written : node.writes) {
      std::erase_if(whole_, [&](const auto& item) {
        return graph_.values[item.first].storage_id == graph_.values[written].storage_id;
      });
    }
  }

  [[noreturn]] static void refuse(const Node& node) {
    throw Error(ErrorKind::kInvalidArgument,
                "node " + std::to_string(node.id) + " '" + node.name +
                    "' cannot run on tiles as the sharding has it; find it for this graph");
  }

  const Graph& graph_;
  const Sharding& sharding_;
  ShardRange range_;
  PartValues values_;
  std::map<ValueId, ValueId> whole_;  ///< Split values put together.
  std::vector<HaloExchange> halos_;
};

}  // namespace

ShardedGraph tiled_graph(const Graph& graph, const Sharding& sharding, ShardRange range) {
  ShardedGraph result = TileWriter(graph, sharding, range).run();
  graph::check(result.graph);
  return result;
}

}  // namespace trireme::sharding
