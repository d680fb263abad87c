#pragma once

#include <span>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::program {

/// A value that is made in one stage and used in later ones.
///
/// It goes forward directly from `stages[0]`, its producer, to each consumer. Its gradient comes
/// back along the chain, last consumer to first to producer, each adding its own part: the order in
/// which the backward of the uncut graph adds them.
struct Crossing {
  graph::ValueId value;
  std::vector<int> stages;  ///< Producer, then consumers, ascending.
  bool has_gradient;
};

/// Positions of the nodes that each stage runs, in execution order: its copies, then its range.
std::vector<std::vector<int>> stage_positions(const graph::Graph& graph, const layout::Plan& plan);

/// All values that cross a cut, by value id. Cost linear in nodes x arguments.
std::vector<Crossing> crossings(const graph::Graph& graph, const layout::Plan& plan);

/// Positions of the nodes that compute `values` and nothing else, in execution order. Nodes that
/// write into memory of one of them are among them.
std::vector<int> ancestors(const graph::Graph& graph, std::span<const graph::ValueId> values);

}  // namespace trireme::program
