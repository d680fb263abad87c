#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/parameters/parameter_map.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/memory.h"
#include "trireme/plan/simulate/simulate.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

struct ForecastOptions {
  MemoryOptions memory;
  schedule::ProgramOptions program;
};

/// All that is predicted about a step of a plan.
struct Forecast {
  std::vector<StageCost> stages;   ///< While ranks hold what the schedule makes them hold.
  std::vector<RankMemory> memory;  ///< By world rank.
  schedule::StepProgram program;
  Simulation simulation;
  double work_us = 0;        ///< Forward and backward of one microbatch of the uncut graph.
  double plan_bound_us = 0;  ///< Of this plan: bounds.h.
  double any_bound_us = 0;   ///< Of any plan with as many ranks.

  std::int64_t peak_bytes() const;  ///< Of the rank with most.
};

/// inputs    planned, plan and map as for schedule::make_step_program; a profile that passes its
///           check against the recorded graph; a topology that does, with a place for each rank.
/// Errors    kInvalidArgument where these do not fit each other.
Forecast forecast(const PriceInputs& inputs, const ForecastOptions& options = {});

}  // namespace trireme::simulate
