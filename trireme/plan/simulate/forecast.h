#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/rank_memory.h"
#include "trireme/plan/simulate/simulate.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// What no step of this plan can beat, in any order of its actions; f, b, w are forward, backward and all work of a
/// stage for one of a replica's m microbatches:
///
///  * max_i [ c_i + m w_i ], c_i = max_j [ c_j + f_j + b_j ] over the stages j that send stage i a
///    value with a gradient: they run one microbatch before the first forward of stage i, and one
///    after its last backward. In a chain c_i is the work of all stages before it. Where the schedule splits backwards,
///    b_j = 0: stage i may have weights left when the last gradient has gone;
///  * m x the work of ranks that share cores / their cores.
///
/// costs       by stage.
/// crossings   of the plan.
double plan_bound_us(const std::vector<StageCost>& costs, const layout::Plan& plan,
                     const topology::Topology& topology,
                     const std::vector<layout::Crossing>& crossings);

/// What no plan at all can beat: one microbatch through the longest path, and m x all work / p.
///
/// path_us            forward and gradients of inputs along the longest path of values with gradients.
/// work_us            forward and backward of one microbatch of the uncut graph.
/// num_microbatches   m, of a replica.
/// num_processors     p: stages, or the cores that they have together where that is less.
double any_plan_bound_us(double path_us, double work_us, std::int64_t num_microbatches,
                         double num_processors);

struct ForecastOptions {
  MemoryOptions memory;
  schedule::ProgramOptions program;

  /// Changes speed only: of replicas that are alike (alike_replicas.h) the first is played for all. Program and
  /// events are then those of the ranks that are played.
  bool plays_alike_once = false;
};

/// All that is predicted about a step of a plan.
struct Forecast {
  std::vector<StageCost> stages;   ///< While ranks hold what the schedule makes them hold.
  std::vector<RankMemory> memory;  ///< By world rank: what no order of events exceeds.
  std::vector<int> played_by;      ///< By world rank, as for `simulate`; empty: all are played.
  schedule::StepProgram program;
  Simulation simulation;
  double work_us = 0;        ///< Forward and backward of one microbatch of the uncut graph.
  double plan_bound_us = 0;  ///< Of this plan, as above.
  double any_bound_us = 0;   ///< Of any plan with as many ranks.

  std::int64_t peak_bytes() const;  ///< Of the rank with most.
};

/// inputs    planned, plan and map as for schedule::make_step_program; a profile that passes its
///           check against the recorded graph; a topology that does, with a place for each rank.
/// Errors    kInvalidArgument where these do not fit each other.
Forecast forecast(const PriceInputs& inputs, const ForecastOptions& options = {});

/// `Forecast::memory` where messages come and go as in the step that `forecast` played, and not as late as can be: what
/// is to be compared with a measured peak.
///
/// inputs, options   that `forecast` was made of.
std::vector<RankMemory> expected_memory(const PriceInputs& inputs, const Forecast& forecast,
                                        const MemoryOptions& options);

}  // namespace trireme::simulate
