#pragma once

#include "tests/graphs/graph_builder.h"

namespace trireme::sharding::test {

using graph::ArgumentList;
using graph::Size;
using graph::ValueId;
using graph::testing::GraphBuilder;

/// [B, 2, rows, 4] -> as many channels and rows / stride rows, by a 3 x 3 kernel.
inline ValueId convolution(GraphBuilder& b, ValueId x, std::int64_t rows, std::int64_t stride = 1) {
  const std::string name = "w" + std::to_string(x);
  const ValueId w = b.parameter(name, {2, 2, 3, 3});
  const auto both = [](std::int64_t of_rows) {
    return graph::Argument{ArgumentList{{Size{0, of_rows}}, {Size{0, 1}}}};
  };
  return b.node("conv2d", {x, w}, b.batch({2, rows / stride, 4}),
                {.name = name, .constants = {{}, both(stride), both(1), both(1), {Size{0, 1}}}});
}

/// Images of 8 rows: convolution, ReLU, convolution to 4 rows, convolution, mean.
inline graph::Graph images() {
  GraphBuilder b;
  ValueId x = b.input("x", {2, 8, 4});
  x = convolution(b, x, 8);
  x = b.node("relu", {x}, b.batch({2, 8, 4}));
  x = convolution(b, x, 8, 2);
  x = convolution(b, x, 4);
  b.loss(x);
  return b.graph();
}

}  // namespace trireme::sharding::test
