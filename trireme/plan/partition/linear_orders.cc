#include "trireme/plan/partition/linear_orders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::partition {
namespace {

using Order = std::vector<int>;
using Blocks = std::vector<BlockGraph::Block>;

/// Of two that are ready the one with the less key runs first, of equal ones the one that was recorded first.
using Key = std::pair<double, double>;

/// key     of a block that is ready, asked anew each time; since: how many ran before it was ready.
/// run     told of each block as it runs.
Order ordered(const Blocks& blocks, const std::function<Key(int block, int since)>& key,
              const std::function<void(int block)>& run) {
  std::vector<std::size_t> num_before;
  std::map<int, int> ready;  // With `since`.
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    num_before.push_back(blocks[b].before.size());
    if (num_before[b] == 0) ready.emplace(static_cast<int>(b), 0);
  }
  Order order;
  while (!ready.empty()) {
    const auto [b, since] = *std::ranges::min_element(ready, {}, [&](const auto& one) {
      return std::pair(key(one.first, one.second), one.first);
    });
    ready.erase(b);
    order.push_back(b);
    run(b);
    for (const int after : blocks[b].after) {
      if (--num_before[after] == 0) ready.emplace(after, static_cast<int>(order.size()));
    }
  }
  return order;
}

/// By block: work of the longest way from its beginning to the end.
std::vector<double> ways_to_the_end(const Blocks& blocks) {
  std::vector<double> ways(blocks.size());
  for (std::size_t b = blocks.size(); b-- > 0;) {
    for (const int after : blocks[b].after) ways[b] = std::max(ways[b], ways[after]);
    ways[b] += blocks[b].work_us;
  }
  return ways;
}

/// By block: work of the longest way to its beginning.
std::vector<double> ways_to_blocks(const Blocks& blocks) {
  std::vector<double> ways(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const int after : blocks[b].after) {
      ways[after] = std::max(ways[after], ways[b] + blocks[b].work_us);
    }
  }
  return ways;
}

/// Bytes of values that are made and still to be used.
class LiveBytes {
 public:
  LiveBytes(const BlockGraph& graph, std::int64_t microbatch) : uses_(graph.blocks().size()) {
    const graph::Graph& recorded = graph.recorded();
    std::map<graph::ValueId, std::set<int>> users;
    for (std::size_t b = 0; b < graph.blocks().size(); ++b) {
      const BlockGraph::Block& block = graph.blocks()[b];
      for (int p = block.begin; p < block.end; ++p) {
        for (const graph::ValueId id : graph::input_values(recorded.nodes[p])) {
          const bool is_made = recorded.values[id].source == graph::ValueSource::kNode;
          if (is_made) users[id].insert(static_cast<int>(b));
        }
      }
    }
    const auto positions = graph::node_positions(recorded);
    for (const auto& [id, blocks] : users) {
      const int made = block_of(graph, positions.at(recorded.values[id].producer));
      Value value{static_cast<double>(graph::bytes_at(recorded.values[id], microbatch)), 0};
      for (const int user : blocks) {
        if (user == made) continue;
        ++value.num_uses;
        uses_[user].used.push_back(static_cast<int>(values_.size()));
      }
      if (value.num_uses > 0) uses_[made].made_bytes += value.bytes;
      values_.push_back(value);
    }
  }

  /// More than before, if the block ran next.
  double growth(int block) const {
    double bytes = uses_[block].made_bytes;
    for (const int value : uses_[block].used) {
      if (values_[value].num_uses == 1) bytes -= values_[value].bytes;
    }
    return bytes;
  }

  void run(int block) {
    for (const int value : uses_[block].used) --values_[value].num_uses;
  }

 private:
  struct Value {
    double bytes = 0;
    int num_uses = 0;  ///< By blocks that have not run, but for its own.
  };
  struct Uses {
    double made_bytes = 0;
    std::vector<int> used;  ///< Values of other blocks.
  };

  static int block_of(const BlockGraph& graph, int position) {
    const auto next =
        std::ranges::upper_bound(graph.blocks(), position, {}, &BlockGraph::Block::begin);
    return static_cast<int>(next - graph.blocks().begin()) - 1;
  }

  std::vector<Value> values_;
  std::vector<Uses> uses_;  ///< By block.
};

}  // namespace

std::vector<std::vector<int>> linear_orders(const BlockGraph& graph, std::int64_t microbatch) {
  const Blocks& blocks = graph.blocks();
  if (!graph.has_orders()) return {};
  const auto nothing = [](int) {};
  const std::vector<double> to_end = ways_to_the_end(blocks), to_block = ways_to_blocks(blocks);
  LiveBytes live(graph, microbatch);
  Order recorded(blocks.size());
  std::iota(recorded.begin(), recorded.end(), 0);
  std::vector<Order> orders;
  const auto add = [&](Order order) {
    if (order != recorded && std::ranges::find(orders, order) == orders.end()) {
      orders.push_back(std::move(order));
    }
  };
  add(ordered(blocks, [&](int b, int since) { return Key(-since, -to_end[b]); }, nothing));
  add(ordered(
      blocks, [&](int b, int since) { return Key(live.growth(b), -since); },
      [&](int b) { live.run(b); }));
  add(ordered(blocks, [&](int b, int) { return Key(to_block[b], 0); }, nothing));
  return orders;
}

}  // namespace trireme::partition
