#include "trireme/plan/schedule/offload.h"

#include <algorithm>
#include <map>
#include <utility>

namespace trireme::schedule {

std::vector<OffloadedMicrobatch> find_offloads(const std::vector<Action>& actions,
                                               const std::vector<bool>& offloads) {
  std::map<std::pair<int, int>, int> forwards;  // Place by stage and microbatch.
  std::vector<OffloadedMicrobatch> found;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& action = actions[i];
    if (!offloads[action.stage] || action.kind == ActionKind::kBackwardWeight) continue;
    const std::pair place(action.stage, action.microbatch);
    if (action.kind == ActionKind::kForward) {
      forwards[place] = i;
      continue;
    }
    const auto forward = forwards.find(place);
    if (forward == forwards.end() || i - forward->second <= kPrefetchedAhead) continue;
    found.push_back({forward->second, i - kPrefetchedAhead, i});
  }
  std::ranges::sort(found, {}, &OffloadedMicrobatch::forward);
  return found;
}

}  // namespace trireme::schedule
