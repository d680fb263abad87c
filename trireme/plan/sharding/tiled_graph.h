#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/sharded_graph.h"

namespace trireme::sharding {

/// The graph of the tiles of some shards: what `sharded_graph` makes of a sharding of tiles.
///
///     y = conv2d(x, w, padding 1); m = mean(y)                          rows of x and y split, both shards here
///     -> w0, w1 = given to shards(w); x0, x1 = slices of x; h0, h1 = halo of shards(x0, x1)
///        y0 = conv2d(pad(h0, above), w0, padding 0 of rows); y1 = conv2d(pad(h1, below), w1)
///        m = sum over shards(sum(y0), sum(y1)) / elements
///
/// A window's padding stands at the edges of the whole alone. Of a norm mean and variance are summed over shards, then
/// each normalises its rows; a batch norm is called on two rows that have this mean and variance, for its running statistics. A
/// whole node takes split values put together: tiles within zeros, summed. All parameters are whole.
///
/// Errors   kInvalidArgument, naming the node, where it does not run as the splits have it.
ShardedGraph tiled_graph(const graph::Graph& graph, const Sharding& sharding, ShardRange range);

}  // namespace trireme::sharding
