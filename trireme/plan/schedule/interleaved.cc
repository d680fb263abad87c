#include "trireme/plan/schedule/interleaved.h"

#include <algorithm>

#include "trireme/plan/schedule/shape.h"

namespace trireme::schedule {

Schedule make_interleaved(int num_stages, int num_microbatches) {
  internal::check_shape(num_stages, num_microbatches);
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    // Until the first backward is back from the last stage, only forwards are ready.
    const int warmup = std::min(num_microbatches, num_stages - 1 - stage);
    std::vector<Action> actions;
    for (int m = 0; m < warmup; ++m) actions.push_back({ActionKind::kForward, stage, m});
    for (int m = warmup; m < num_microbatches; ++m) {
      actions.push_back({ActionKind::kForward, stage, m});
      actions.push_back({ActionKind::kBackward, stage, m - warmup});
    }
    for (int m = num_microbatches - warmup; m < num_microbatches; ++m) {
      actions.push_back({ActionKind::kBackward, stage, m});
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace trireme::schedule
