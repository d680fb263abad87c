#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// The schedule `name` of a plan: `simple` (simple.h) or `interleaved` (interleaved.h).
///
/// Errors   kInvalidArgument where there is no such schedule, listing the known ones, or where it
///          cannot have these numbers.
Schedule make_schedule(std::string_view name, int num_stages, int num_microbatches);

/// As above for a plan's choice; also refuses parameters, which no schedule has so far.
Schedule make_schedule(const layout::ScheduleChoice& choice, int num_stages, int num_microbatches);

/// Forwards alone, in order: of an evaluation. No schedule of a training; `check` refuses it.
Schedule forwards(int num_stages, int num_microbatches);

/// The names that `make_schedule` knows.
std::vector<std::string> schedule_names();

}  // namespace trireme::schedule
