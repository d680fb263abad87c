#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <utility>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {

/// The schedules that were used last, so that a call that repeats one of the calls before it makes
/// none. Each user has its own: a group's backend, and what else calls operations.
///
/// Cost     a comparison of settings with each kept one; a schedule has about 150 bytes a step.
/// Threads  caller-synchronised.
class ScheduleCache {
 public:
  static constexpr std::size_t kMaxKept = 16;
  using Make = std::function<CollectiveSchedule(const CollectiveSetting&)>;

  explicit ScheduleCache(Make make = make_schedule) : make_(std::move(make)) {}

  /// make_schedule(setting); valid until the next call. Errors of `make_schedule`.
  const CollectiveSchedule& get(CollectiveSetting setting);

 private:
  struct Kept {
    CollectiveSetting setting;
    CollectiveSchedule schedule;
  };

  const Make make_;
  std::list<Kept> kept_;  ///< The last used first.
};

}  // namespace trireme::collectives
