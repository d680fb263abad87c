#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// What no step of this plan can beat where a backward is not split, in any order of its actions;
/// f, b, w are forward, backward and all work of a stage for one of a replica's m microbatches:
///
///  * max_i [ sum_{j<i} (f_j + b_j) + m w_i ]: before the first forward of stage i the stages before
///    it run one, after its last backward they run one;
///  * sum_i (f_i + b_i): one microbatch through everything;
///  * m x the work of ranks that share cores / their cores.
///
/// costs   by stage.
double plan_bound_us(const std::vector<StageCost>& costs, const layout::Plan& plan,
                     const topology::Topology& topology);

/// What no plan at all can beat: one microbatch through everything, and m x all work / p.
///
/// work_us            forward and backward of one microbatch of the uncut graph.
/// num_microbatches   m, of a replica.
/// num_processors     p: stages, or the cores that they have together where that is less.
double any_plan_bound_us(double work_us, std::int64_t num_microbatches, double num_processors);

}  // namespace trireme::simulate
