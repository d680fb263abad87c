#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::transport {

/// That long from now; the end of time where it would be beyond.
inline std::chrono::steady_clock::time_point later(std::chrono::milliseconds time) {
  using Time = std::chrono::steady_clock::time_point;
  if (time > std::chrono::hours(24 * 365)) return Time::max();
  return std::chrono::steady_clock::now() + time;
}

/// How long a rank waits for others.
struct WatchOptions {
  std::chrono::milliseconds deadline{300'000};   ///< A longer wait is an error.
  std::chrono::milliseconds warn_after{20'000};  ///< A longer one is logged, again and again.
  Logger logger{LogLevel::kInfo};
};

/// A work that somebody waits for.
struct Awaited {
  Work& work;
  Endpoint& endpoint;                         ///< Whose work it is.
  std::function<std::vector<int>()> missing;  ///< World ranks that it waits for at the moment.
  bool has_deadline = false;                  ///< Of its own, which ends it.
  std::function<void()> meanwhile;  ///< Called again and again instead of sleeping; may be none.
};

/// A message from or to `peer`.
Awaited message_work(Work& work, Endpoint& endpoint, int peer);

/// Waits under the watchdog's eye: logs for whom `place` waits, throws kTimeout at the deadline,
/// unless the work has one of its own, or the work's own error, each with the place. Before
/// kTimeout the endpoint is poisoned: however this ends, the work has too, and what was lent to it
/// may go. What ended the world before is thrown in place of kTimeout.
///
/// place   rank, operation and, where there are any, step and microbatch of whoever waits.
void await(const Awaited& awaited, const WatchOptions& watch, const ErrorContext& place);

}  // namespace trireme::transport
