#include "trireme/wire/collectives/schedule/cache.h"

#include <algorithm>

namespace trireme::collectives {

const CollectiveSchedule& ScheduleCache::get(CollectiveSetting setting) {
  const auto found = std::ranges::find(kept_, setting, &Kept::setting);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front().schedule;
  }
  CollectiveSchedule made = make_(setting);
  if (kept_.size() == kMaxKept) kept_.pop_back();
  kept_.push_front({std::move(setting), std::move(made)});
  return kept_.front().schedule;
}

}  // namespace trireme::collectives
