#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/regions.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::simulate {

/// A plan's regions as stages, and what crosses them.
struct DividedPlan {
  DividedPlan(const graph::Graph& planned, const layout::Plan& plan);

  /// One of `regions.plan`'s stages by itself.
  StageNodes nodes_of(int region) const;

  layout::RegionPlan regions;
  std::vector<layout::Crossing> crossings;
  std::vector<std::vector<int>> positions;  ///< By region.
};

/// Of a stage that recomputes: the passes of its regions (engine/program/stage_regions.h), one after another, beside what
/// is kept for those that come later.
StageTensors recomputed_tensors(const TensorRules& rules, const DividedPlan& divided, int stage);

}  // namespace trireme::simulate
