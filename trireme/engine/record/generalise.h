#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// A recording whose sizes are all fixed, and the batch size it was made at.
struct FixedGraph {
  const graph::Graph& graph;
  std::int64_t batch;
};

/// The graph whose sizes grow with the batch: each integer of the first two recordings is fitted as
/// per_sample x batch + fixed and checked against the others, which were made with other data.
///
/// recordings   at least three, at different batch sizes.
/// Errors       SizeProblem naming the first node that differs in anything else, or whose
///              integer, shape or constant is not explained by the batch.
graph::Graph generalise(const std::vector<FixedGraph>& recordings);

}  // namespace trireme::record
