#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

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

}  // namespace trireme::layout
