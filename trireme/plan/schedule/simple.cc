#include "trireme/plan/schedule/simple.h"

#include "trireme/plan/schedule/shape.h"

namespace trireme::schedule {

Schedule make_simple(int num_stages, int num_microbatches) {
  internal::check_shape(num_stages, num_microbatches);
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Action> actions;
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int m = 0; m < num_microbatches; ++m) actions.push_back({kind, stage, m});
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace trireme::schedule
