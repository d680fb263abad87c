#pragma once

#include "tests/graphs/graph_builder.h"

namespace trireme::sharding::test {

using graph::ArgumentList;
using graph::Size;
using graph::ValueId;
using graph::testing::GraphBuilder;

/// x -> mm(w1) -> relu -> mm(w2) -> loss: [B, 8] and 4 times as many channels inside. Values 0 to 6, nodes 0 to 3.
inline graph::Graph feed_forward() {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId start = b.parameter("start", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId h = b.node("add", {x, start}, b.batch({8}));
  ValueId y = b.node("mm", {h, w1}, b.batch({32}), {.name = "up"});
  y = b.node("relu", {y}, b.batch({32}));
  y = b.node("mm", {y, w2}, b.batch({8}), {.name = "down"});
  b.loss(y);
  return b.graph();
}

}  // namespace trireme::sharding::test
