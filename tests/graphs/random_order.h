#pragma once

#include <random>
#include <span>
#include <vector>

#include "trireme/plan/graph/node_order.h"

namespace trireme::graph::testing {

/// Ids of the nodes in an order that gives the same bits, and with copies of `copied` too: of those that may run next any one.
inline std::vector<NodeId> random_order(std::mt19937& random, const Graph& graph,
                                        std::span<const NodeId> copied = {}) {
  const std::vector<std::vector<int>> later = later_nodes(graph, copied);
  std::vector<int> num_before(graph.nodes.size()), ready;
  for (const std::vector<int>& after : later) {
    for (const int p : after) ++num_before[p];
  }
  for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
    if (num_before[p] == 0) ready.push_back(p);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const int next = ready.back();
    ready.pop_back();
    order.push_back(graph.nodes[next].id);
    for (const int p : later[next]) {
      if (--num_before[p] == 0) ready.push_back(p);
    }
  }
  return order;
}

}  // namespace trireme::graph::testing
