#pragma once

#include "trireme/base/json.h"
#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/analytic/machine.h"
#include "trireme/plan/analytic/model_shape.h"
#include "trireme/plan/analytic/train_layout.h"

namespace trireme::analytic {

/// Actions that are drawn at most: a picture of more shows nothing.
inline constexpr std::int64_t kMostDrawnActions = 20'000;

/// What the ranks of a layout's pipeline do, for a picture:
///
///     {"ranks": 2, "num_actions": 8, "end_s": 1.5, "actions": [[rank, begin_s, end_s, "F", stage, microbatch], ..]}
///
/// Sums of gradients and the optimizer come after it. `actions` is null where there are more than kMostDrawnActions.
///
/// Errors   kInvalidArgument of schedule::make_schedule.
Json pipeline_timeline(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
                       const AchievedParts& achieved);

}  // namespace trireme::analytic
