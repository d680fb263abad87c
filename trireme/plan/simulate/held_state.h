#pragma once

#include <cstdint>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::simulate {

/// Bytes of values and gradients that a rank holds while an action runs, and after it.
struct HeldState {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
};

/// By action of a rank, of its sharded buckets (layout::sharded_buckets): of values shards always, and the whole where
/// schedule/whole_stages.h has it; of gradients the lanes' buffers from the stage's first backward on, until the action
/// after its last, and from then on the shard of their sum.
///
/// actions          of the rank at this position of the pipeline.
/// plan, map        that shard parameters.
/// gradient_dtype   TrainingOptions::gradient_dtype.
/// Cost             actions x stages of the rank.
std::vector<HeldState> held_state(const std::vector<schedule::Action>& actions,
                                  const layout::Plan& plan, const layout::ParameterMap& map,
                                  int replica, Dtype gradient_dtype);

}  // namespace trireme::simulate
