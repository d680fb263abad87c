#pragma once

#include <map>
#include <set>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

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

/// The stages whose nodes take each value, parameters and buffers included.
std::map<graph::ValueId, std::set<int>> stages_of_values(const graph::Graph& graph,
                                                         const layout::Plan& plan);

/// Whether one of the users is one of `stages`.
bool has_any(const std::set<int>& users, const std::vector<int>& stages);

/// The stage after (before) `stage` in the chain of a crossing; -1 at its end.
int next_in_chain(const Crossing& crossing, int stage);
int previous_in_chain(const Crossing& crossing, int stage);

/// What a stage does with losses, each by its index in Graph::losses, ascending.
struct StageLosses {
  std::vector<int> made;    ///< Their values are made here.
  std::vector<int> seeded;  ///< Their backward begins here: no later stage uses the value.
  /// Of those with a weight, the ones whose total the stage needs: to report a loss that it makes,
  /// or for the gradient that it seeds.
  std::vector<int> weighed;
};

/// By stage.
///
/// crossings   of the plan, as `crossings` gives them.
std::vector<StageLosses> stage_losses(const graph::Graph& graph, const Plan& plan,
                                      const std::vector<Crossing>& crossings);

/// By stage: the outputs that it gives, each by its index in Graph::outputs. Fields of the batch are given by the last.
std::vector<std::vector<int>> stage_outputs(const graph::Graph& graph, const Plan& plan);

}  // namespace trireme::layout
