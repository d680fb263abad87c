#pragma once

#include "trireme/plan/graph/graph.h"

namespace trireme::graph::testing {

/// x -> linear(w1, b1) -> relu -> linear(w2, b2) -> loss: 4 nodes, cuts anywhere.
Graph make_mlp();

/// Everything that a graph can hold: tied, frozen and unused parameters, buffers of each policy, a
/// constant, an in-place write, a view, a random node, an opaque node, lists of outputs, all kinds
/// of arguments, autocast, a copy, two losses with a weight and a metric, a step scalar.
Graph make_rich_graph();

/// A graph that passes `check`: `num_nodes` nodes over random earlier values, some of which write,
/// view, draw, or use parameters and buffers, and a loss.
Graph make_random_graph(unsigned seed, int num_nodes);

}  // namespace trireme::graph::testing
