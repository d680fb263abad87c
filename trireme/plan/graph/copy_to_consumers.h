#pragma once

#include <span>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Runs cheap nodes (a position bias, a mask) once per node that consumes them, so that a cut
/// between two consumers need not send their values. Made before planning, and so in the serial
/// executor too: each copy that takes a parameter is a use site of its own.
///
/// Before every node outside `nodes` that takes an output of them, the part of `nodes` that it
/// needs is run. Each node's first run keeps its id and values; later ones get fresh ids and values
/// and `copy_of`, which shares a random node's stream:
///
///     a = arange; b = embedding(a); c = add(x, b); d = add(y, b)        copy {a, b}
///     ->  a; b; c = add(x, b); a'; b'; d = add(y, b')
///
/// nodes    ids in any order, without repeats.
/// Errors   kInvalidArgument, naming the node and the reason: unknown id; a node that writes, reads
///          a buffer that is written, whose outputs are written in place, nobody consumes or are a
///          loss or weight; an input of it that is written between it and a consumer.
/// graph    one that passes `check`; so does the result.
Graph copy_to_consumers(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace trireme::graph
