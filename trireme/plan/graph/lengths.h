#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// The graph that holds for microbatches of that size: `graph` itself or one of Graph::shorter.
///
/// Errors   kInvalidArgument where it has no such one.
const Graph& at_lengths(const Graph& graph, const BatchSize& size);

/// The first thing in which two graphs differ beyond numbers and lengths, naming the node; empty if nothing does.
std::string structure_difference(const Graph& graph, const Graph& other);

/// `{"time": 64}` as text: `time 64`.
std::string lengths_text(const Graph& graph);

/// Proves of Graph::shorter that they pass `check` and are what is said there. Errors of `check`.
void check_shorter(const Graph& graph);

}  // namespace trireme::graph
