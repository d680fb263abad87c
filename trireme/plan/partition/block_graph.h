#pragma once

#include <span>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// Graphs of more blocks are planned in the recorded order alone.
inline constexpr int kMostOrderedBlocks = 5000;

/// The nodes of a graph, those between which no cut may fall taken together, and which of these blocks must run before which
/// (graph::later_nodes). Whatever their order, each block's nodes run in theirs.
///
///     a -> b -> c -> loss,  a -> d -> e -> loss     blocks 0 a, 1 b, 2 c, 3 d, 4 e, 5 loss
///                                                   orders 0 1 2 3 4 5 and 0 1 3 2 4 5, ...
class BlockGraph {
 public:
  struct Block {
    int begin = 0, end = 0;          ///< Positions in the recorded graph.
    double work_us = 0;              ///< Forward and backward of its nodes.
    double lead_us = 0;              ///< Forward and backward into inputs: what others wait for.
    std::vector<int> before, after;  ///< Blocks, ascending.
    std::vector<int>
        feeds;  ///< Those of `after` that wait for values of it, and it for their gradients.
  };

  /// recorded   passes graph::check; the profile is of it.
  /// copied     ids of nodes that are copied to their consumers, whatever the order.
  BlockGraph(const graph::Graph& recorded, const profile::Profile& profile,
             std::span<const graph::NodeId> copied = {});

  /// In the recorded order, in which no block is before one that must come first.
  const std::vector<Block>& blocks() const { return blocks_; }

  /// Whether there is one order alone.
  bool is_chain() const;

  /// Whether there are several orders, and no more blocks than are ordered anew (kMostOrderedBlocks).
  bool has_orders() const;

  /// Ids of the nodes where blocks run in this order.
  std::vector<graph::NodeId> nodes(const std::vector<int>& order) const;

  const graph::Graph& recorded() const { return recorded_; }

 private:
  const graph::Graph& recorded_;
  std::vector<Block> blocks_;
};

}  // namespace trireme::partition
