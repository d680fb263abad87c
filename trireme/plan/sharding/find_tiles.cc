#include "trireme/plan/sharding/find_tiles.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/product_flops.h"
#include "trireme/plan/sharding/tile_rules.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

/// What would be split, and how nodes run.
struct Tiling {
  Splits splits;
  std::map<int, TileRule> nodes;  ///< By position.
};

class TileSearch {
 public:
  TileSearch(const Graph& graph, const ShardingOptions& options)
      : graph_(graph), options_(options), written_(written_storages()) {
    for (const graph::LossOutput& loss : graph.losses) {
      whole_.insert(loss.value);
      if (loss.weight) whole_.insert(*loss.weight);
    }
    for (const graph::Output& output : graph.outputs) whole_.insert(output.value);
  }

  Sharding run() {
    Sharding best{.kind = SplitKind::kTiles,
                  .graph_sha256 = graph::graph_sha256(graph_),
                  .num_shards = options_.num_shards,
                  .splits = {},
                  .parts = {}};
    if (options_.num_shards == 1) return best;
    double saved = 0;
    for (const std::int64_t least : numbers_of_rows()) {
      Tiling tiling = tile_from(least);
      ShardedPart part = part_of(tiling);
      if (part.seconds_saved <= saved) continue;
      saved = part.seconds_saved;
      best.splits = std::move(tiling.splits);
      best.parts = {std::move(part)};
    }
    return best;
  }

 private:
  std::set<int> written_storages() const {
    std::set<int> storages;
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : node.writes) storages.insert(graph_.values[id].storage_id);
    }
    return storages;
  }

  /// Of outputs of windows.
  std::set<std::int64_t> numbers_of_rows() const {
    std::set<std::int64_t> numbers;
    for (const Node& node : graph_.nodes) {
      if (tile_rule(graph_, node, {}, options_.num_shards)) {
        numbers.insert(rows_of(node.outputs.front(), kRowDim));
      }
    }
    return numbers;
  }

  std::int64_t rows_of(ValueId value, int dim) const {
    return graph_.values[value].shape[dim].fixed;
  }

  /// Storages of which some values would be split and others whole, and some node writes, stay whole.
  Tiling tile_from(std::int64_t least) const {
    std::set<int> never;
    while (true) {
      Tiling tiling = spread(least, never);
      const std::set<int> mixed = mixed_storages(tiling);
      if (mixed.empty()) return tiling;
      never.insert(mixed.begin(), mixed.end());
    }
  }

  Tiling spread(std::int64_t least, const std::set<int>& never) const {
    Tiling tiling;
    for (int position = 0; position < std::ssize(graph_.nodes); ++position) {
      const Node& node = graph_.nodes[position];
      auto rule = tile_rule(graph_, node, tiling.splits, options_.num_shards);
      if (!rule) continue;
      const auto is_kept_whole = [&](ValueId id) {
        return whole_.contains(id) || never.contains(graph_.values[id].storage_id);
      };
      const bool is_large = std::ranges::all_of(rule->inputs, [&](const auto& item) {
        return rows_of(item.first, item.second) >= least;
      });
      if (rule->output_dim >= 0) {
        const bool may_be_split = is_large && std::ranges::none_of(node.outputs, is_kept_whole) &&
                                  rows_of(node.outputs.front(), rule->output_dim) >= least;
        if (!may_be_split) continue;
        for (const ValueId output : node.outputs) tiling.splits[output] = {rule->output_dim, 1};
      }
      tiling.nodes.emplace(position, std::move(*rule));
    }
    return tiling;
  }

  std::set<int> mixed_storages(const Tiling& tiling) const {
    std::map<int, std::pair<bool, bool>> has;  // split ones, whole ones
    for (const Node& node : graph_.nodes) {
      for (const ValueId output : node.outputs) {
        if (output < 0 || !written_.contains(graph_.values[output].storage_id)) continue;
        auto& [split, whole] = has[graph_.values[output].storage_id];
        (tiling.splits.contains(output) ? split : whole) = true;
      }
    }
    std::set<int> mixed;
    for (const auto& [storage, of] : has) {
      if (of.first && of.second) mixed.insert(storage);
    }
    return mixed;
  }

  std::int64_t bytes_of(ValueId value) const {
    return graph::bytes_at(graph_.values[value], options_.microbatch);
  }

  /// Most bytes that a shard takes of others for a window, one way.
  std::int64_t halo_bytes(const Node& node, const TileRule& rule) const {
    const ValueId x = *value_at(node, 0);
    const std::int64_t extent = rows_of(x, kRowDim);
    const std::int64_t out = rows_of(node.outputs.front(), kRowDim);
    std::vector<RowRange> wanted;
    for (const RowRange tile : all_tiles(out, options_.num_shards)) {
      wanted.push_back(overlap(rows_for(rule.window, tile, extent)->input, {0, extent}));
    }
    return bytes_of(x) / extent * most_rows_of_others(wanted, extent);
  }

  void add_window(const Node& node, const TileRule& rule, const Tiling& tiling,
                  ShardedPart& part) const {
    constexpr double kPasses = 3;  // forward, and a gradient of each operand
    part.flops += kPasses * product_flops(graph_, node, options_.microbatch);
    if (!tiling.splits.contains(*value_at(node, 0))) return;  // of whole values shards take theirs
    const std::int64_t bytes = halo_bytes(node, rule);
    if (bytes == 0) return;
    part.halos.push_back(node.id);
    part.halo_bytes += 2 * bytes;
  }

  /// Whole values whose gradients shards sum, and split ones that are put together. A norm's are in its own sums.
  void add_crossings(const Tiling& tiling, ShardedPart& part,
                     std::vector<std::int64_t>& sums) const {
    std::set<ValueId> taken, gathered;
    for (int position = 0; position < std::ssize(graph_.nodes); ++position) {
      const Node& node = graph_.nodes[position];
      const auto tiled = tiling.nodes.find(position);
      const bool is_tiled = tiled != tiling.nodes.end();
      const bool is_norm = is_tiled && tiled->second.kind == TileKind::kNorm;
      for (const ValueId id : graph::input_values(node)) {
        const bool is_split = tiling.splits.contains(id);
        if (!is_tiled && is_split && gathered.insert(id).second) {
          part.sums.push_back(node.id);
          sums.push_back(bytes_of(id));
        }
        if (is_tiled && !is_norm && !is_split && node.flags.grad_mode &&
            graph_.values[id].requires_grad) {
          taken.insert(id);
        }
      }
    }
    part.taken.assign(taken.begin(), taken.end());
    for (const ValueId id : taken) sums.push_back(bytes_of(id));
  }

  ShardedPart part_of(const Tiling& tiling) const {
    ShardedPart part;
    std::vector<std::int64_t> sums;
    for (const auto& [position, rule] : tiling.nodes) {
      const Node& node = graph_.nodes[position];
      if (part.name.empty()) part.name = node.name;
      if (rule.kind == TileKind::kWindow) add_window(node, rule, tiling, part);
      const bool is_norm = rule.kind == TileKind::kNorm;
      if (!is_norm && rule.output_dim >= 0) continue;
      part.sums.push_back(node.id);
      const std::int64_t bytes =
          bytes_of(node.outputs.front()) / (is_norm ? elements_over(node, rule) : 1);
      // A norm's sum, squares, and the gradients of its mean, scale and shift.
      sums.insert(sums.end(), is_norm ? 5 : 1, bytes);
    }
    add_crossings(tiling, part, sums);
    std::ranges::sort(part.sums);
    part.sums.erase(std::ranges::unique(part.sums).begin(), part.sums.end());
    for (const std::int64_t bytes : sums) part.sum_bytes += bytes;
    const double others = 1 - 1.0 / options_.num_shards;
    const auto num_messages = static_cast<double>(sums.size() + 2 * part.halos.size());
    part.seconds_saved =
        others * part.flops / options_.flops_per_second -
        (2 * others * static_cast<double>(part.sum_bytes) + static_cast<double>(part.halo_bytes)) /
            options_.link_bytes_per_second -
        num_messages * options_.link_seconds;
    return part;
  }

  std::int64_t elements_over(const Node& node, const TileRule& rule) const {
    std::int64_t elements = 1;
    for (const int dim : rule.over) {
      elements *= graph_.values[*value_at(node, 0)].shape[dim].at(options_.microbatch);
    }
    return std::max<std::int64_t>(elements, 1);
  }

  const Graph& graph_;
  ShardingOptions options_;
  std::set<int> written_;    ///< Storages that some node writes.
  std::set<ValueId> whole_;  ///< Losses, weights and outputs.
};

}  // namespace

Sharding find_tiles(const Graph& graph, const ShardingOptions& options) {
  check(options);
  if (!graph.shorter.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "rows are not split where samples differ in length; record the model for one length");
  }
  return TileSearch(graph, options).run();
}

}  // namespace trireme::sharding
