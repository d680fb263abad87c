#include "trireme/plan/schedule/in_flight.h"

#include <algorithm>

namespace trireme::schedule {

std::vector<int> most_in_flight(const Schedule& schedule) {
  std::vector<int> now(schedule.num_stages);
  std::vector<int> most(schedule.num_stages);
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (const auto& [kind, stage, microbatch] : actions) {
      if (kind == ActionKind::kForward) most[stage] = std::max(most[stage], ++now[stage]);
      if (kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight) --now[stage];
    }
  }
  return most;
}

}  // namespace trireme::schedule
