#include "trireme/plan/sharding/find_sharding.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/node_splits.h"
#include "trireme/plan/sharding/product_flops.h"
#include "trireme/plan/sharding/vocabulary_nodes.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueSource;

/// Positions of the nodes that make, write or take a value.
std::vector<std::vector<int>> users_of(const Graph& graph) {
  std::vector<std::vector<int>> users(graph.values.size());
  const auto add = [&](ValueId value, int position) {
    if (value < 0) return;
    if (users[value].empty() || users[value].back() != position) users[value].push_back(position);
  };
  for (int position = 0; position < std::ssize(graph.nodes); ++position) {
    for (const ValueId value : graph::input_values(graph.nodes[position])) add(value, position);
    for (const ValueId value : graph.nodes[position].outputs) add(value, position);
  }
  return users;
}

/// Splits that have spread as far as they must.
struct Spread {
  Splits splits;
  std::set<int> nodes;  ///< Positions of nodes that run in shards.
  std::set<int> sums;   ///< Those of them whose outputs are added up.
};

class Search {
 public:
  Search(const Graph& graph, const ShardingOptions& options)
      : graph_(graph), options_(options), users_(users_of(graph)) {
    for (const graph::LossOutput& loss : graph.losses) {
      whole_.insert(loss.value);
      if (loss.weight) whole_.insert(*loss.weight);
    }
    for (const graph::Output& output : graph.outputs) whole_.insert(output.value);
  }

  Sharding run() {
    std::vector<std::pair<double, int>> candidates;  // what each would save by itself
    const bool is_whole = options_.num_shards == 1;
    for (int position = 0; !is_whole && position < std::ssize(graph_.nodes); ++position) {
      const auto found = spread_from(position, {});
      if (!found) continue;
      const double saved = part_of(*found, {}).seconds_saved;
      if (saved > 0) candidates.emplace_back(-saved, position);
    }
    std::ranges::sort(candidates);
    Sharding result{.graph_sha256 = graph::graph_sha256(graph_),
                    .num_shards = options_.num_shards,
                    .splits = {},
                    .parts = {}};
    Spread taken;
    for (const auto& [saved, position] : candidates) {
      if (taken.nodes.contains(position)) continue;
      auto more = spread_from(position, taken);
      if (!more) continue;
      ShardedPart part = part_of(*more, taken);
      if (part.seconds_saved <= 0) continue;
      result.parts.push_back(std::move(part));
      taken = std::move(*more);
    }
    result.splits = std::move(taken.splits);
    return result;
  }

 private:
  /// What a node sums over, where a split may begin: a product whose second operand is a parameter or one in another order, a
  /// lookup in a parameter, a cross entropy.
  std::optional<DimensionMap::Contraction> start_of(const Node& node) const {
    const auto map = is_reshape(node) ? std::nullopt : dimension_map(graph_, node);
    if (!map || !map->contraction) return std::nullopt;
    const auto& [left, left_dim, right, right_dim] = *map->contraction;
    if (right < 0) {
      const bool may_begin =
          !is_lookup(node) || graph_.values[left].source == ValueSource::kParameter;
      return may_begin ? map->contraction : std::nullopt;
    }
    const graph::Value* weight = &graph_.values[right];
    if (weight->source == ValueSource::kNode) {
      const Node& maker = graph_.nodes[positions_.at(weight->producer)];
      const auto from = value_at(maker, 0);
      if (maker.op != "aten::t" && maker.op != "aten::transpose") return std::nullopt;
      if (!from) return std::nullopt;
      weight = &graph_.values[*from];
    }
    return weight->source == ValueSource::kParameter ? map->contraction : std::nullopt;
  }

  /// `taken` and what the node at `position` needs where it is the end of a part; nothing where that cannot be.
  std::optional<Spread> spread_from(int position, const Spread& taken) const {
    const auto product = start_of(graph_.nodes[position]);
    if (!product) return std::nullopt;
    Spread spread = taken;
    std::deque<int> open;
    if (!assign(product->left, {product->left_dim, 1}, spread, open)) return std::nullopt;
    while (!open.empty()) {
      const int next = open.front();
      open.pop_front();
      if (!visit(next, spread, open)) return std::nullopt;
    }
    return spread;
  }

  bool assign(ValueId value, TensorSplit split, Spread& spread, std::deque<int>& open) const {
    const auto [place, is_new] = spread.splits.emplace(value, split);
    if (!is_new) return place->second == split;
    const ValueSource source = graph_.values[value].source;
    if (source != ValueSource::kNode && source != ValueSource::kParameter) return false;
    if (whole_.contains(value)) return false;
    if (!can_split(graph_.values[value].shape, split, options_.num_shards)) return false;
    open.insert(open.end(), users_[value].begin(), users_[value].end());
    return true;
  }

  /// Whether a value that a node wants split may stay whole, of which shards take their parts: nothing is to come back.
  bool may_be_sliced(ValueId value, const Node& node, TensorSplit split) const {
    const graph::Value& wanted = graph_.values[value];
    const bool is_made_here = std::ranges::find(node.outputs, value) != node.outputs.end();
    return !wanted.requires_grad && !is_made_here && split.blocks == 1;
  }

  bool visit(int position, Spread& spread, std::deque<int>& open) const {
    const Node& node = graph_.nodes[position];
    const auto splits = node_splits(graph_, node, spread.splits, options_.num_shards);
    if (!splits) return false;
    spread.nodes.insert(position);
    if (splits->is_sum) spread.sums.insert(position);
    for (const auto& [value, split] : splits->values) {
      if (spread.splits.contains(value) || may_be_sliced(value, node, split)) continue;
      if (!assign(value, split, spread, open)) return false;
    }
    return true;
  }

  /// Values that shards take whole while gradients are recorded: what comes back is added up.
  std::set<ValueId> taken_whole(const Spread& spread) const {
    std::set<ValueId> values;
    for (const int position : spread.nodes) {
      const Node& node = graph_.nodes[position];
      if (!node.flags.grad_mode) continue;
      const auto map = dimension_map(graph_, node);
      for (const ValueId value : graph::input_values(node)) {
        if (spread.splits.contains(value) || !graph_.values[value].requires_grad) continue;
        const bool is_added_later = spread.sums.contains(position) && map && map->bias == value;
        if (!is_added_later) values.insert(value);
      }
    }
    return values;
  }

  ShardedPart part_of(const Spread& spread, const Spread& before) const {
    constexpr double kPasses = 3;  // forward, and a gradient of each operand
    ShardedPart part;
    std::vector<std::int64_t> sums;
    for (const int position : spread.nodes) {
      if (before.nodes.contains(position)) continue;
      const Node& node = graph_.nodes[position];
      part.flops += kPasses * product_flops(graph_, node, options_.microbatch);
      if (!spread.sums.contains(position)) continue;
      if (part.sums.empty()) part.name = node.name;
      part.sums.push_back(node.id);
      const std::vector<std::int64_t> of_node = sums_of(node);
      sums.insert(sums.end(), of_node.begin(), of_node.end());
    }
    const std::set<ValueId> known = taken_whole(before);
    for (const ValueId value : taken_whole(spread)) {
      if (known.contains(value)) continue;
      part.taken.push_back(value);
      sums.push_back(bytes_of(value));
    }
    for (const std::int64_t bytes : sums) part.sum_bytes += bytes;
    const double others = 1 - 1.0 / options_.num_shards;
    part.seconds_saved =
        others * part.flops / options_.flops_per_second -
        2 * others * static_cast<double>(part.sum_bytes) / options_.link_bytes_per_second -
        static_cast<double>(sums.size()) * options_.link_seconds;
    return part;
  }

  /// Bytes of each sum over the shards that a node has in its forward. Of a cross entropy: a maximum of each row, then two sums.
  std::vector<std::int64_t> sums_of(const Node& node) const {
    if (!is_cross_entropy(graph_, node)) return {bytes_of(node.outputs.front())};
    const graph::Value& logits = graph_.values[*value_at(node, 0)];
    const std::int64_t num_rows =
        graph::num_elements_at(logits, options_.microbatch) / logits.shape[1].fixed;
    constexpr std::int64_t kF32Bytes = 4;
    return {num_rows * kF32Bytes, 2 * num_rows * kF32Bytes};
  }

  std::int64_t bytes_of(ValueId value) const {
    return graph::bytes_at(graph_.values[value], options_.microbatch);
  }

  const Graph& graph_;
  ShardingOptions options_;
  std::vector<std::vector<int>> users_;
  std::unordered_map<graph::NodeId, int> positions_ = graph::node_positions(graph_);
  std::set<ValueId> whole_;  ///< Losses, weights and outputs.
};

}  // namespace

void check(const ShardingOptions& options) {
  if (options.num_shards < 1) {
    throw Error(ErrorKind::kInvalidArgument, "a model is split over at least one shard, got " +
                                                 std::to_string(options.num_shards));
  }
  for (const double rate : {options.flops_per_second, options.link_bytes_per_second}) {
    if (rate > 0) continue;
    throw Error(ErrorKind::kInvalidArgument,
                "rates of a rank and of its link are positive, got " + std::to_string(rate));
  }
  if (!(options.link_seconds >= 0)) {
    throw Error(ErrorKind::kInvalidArgument, "the time of a sum is at least 0 seconds, got " +
                                                 std::to_string(options.link_seconds));
  }
}

Sharding find_sharding(const Graph& graph, const ShardingOptions& options) {
  check(options);
  return Search(graph, options).run();
}

}  // namespace trireme::sharding
