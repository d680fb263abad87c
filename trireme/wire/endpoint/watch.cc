#include "trireme/wire/endpoint/watch.h"

#include <algorithm>

#include "trireme/error.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Whether the work has ended within `time`.
bool has_ended_in(const Awaited& awaited, milliseconds time) {
  if (!awaited.meanwhile) return awaited.work.wait_for(time);
  const auto end = Clock::now() + time;
  bool has_ended = false;
  while (!(has_ended = awaited.work.wait_for(milliseconds(0))) && Clock::now() < end) {
    awaited.meanwhile();
  }
  return has_ended;
}

std::string waiting_text(const ErrorContext& place, const std::vector<int>& missing,
                         milliseconds waited) {
  std::string text =
      "has waited " + std::to_string(waited.count() / 1000) + " s in '" + place.operation + "'";
  if (place.step) text += " of step " + std::to_string(*place.step);
  if (place.microbatch) text += ", microbatch " + std::to_string(*place.microbatch);
  return missing.empty() ? text : text + " for " + ranks_text(missing);
}

ErrorContext with_peer(ErrorContext place, const std::vector<int>& missing) {
  if (!missing.empty()) place.peer = missing.front();
  return place;
}

[[noreturn]] void give_up(const Awaited& awaited, const Error& late) {
  awaited.endpoint.poison(late);
  // A group's thread may still have to notice. The work throws, unless it has just ended well.
  awaited.work.wait_for(milliseconds::max());
  throw Error(awaited.endpoint.failure().value_or(late));
}

}  // namespace

Awaited message_work(Work& work, Endpoint& endpoint, int peer) {
  return {.work = work, .endpoint = endpoint, .missing = [peer] { return std::vector{peer}; }};
}

void await(const Awaited& awaited, const WatchOptions& watch, const ErrorContext& place) {
  const milliseconds deadline = awaited.has_deadline ? milliseconds::max() : watch.deadline;
  const auto next = [&](milliseconds waited) {
    return std::min(std::max(watch.warn_after, waited), deadline - waited);
  };
  try {
    for (milliseconds waited{0}; !has_ended_in(awaited, next(waited));) {
      waited += next(waited);
      const std::vector<int> missing = awaited.missing();
      const std::string text = waiting_text(place, missing, waited);
      if (waited >= deadline) {
        Error late(ErrorKind::kTimeout,
                   "rank " + std::to_string(awaited.endpoint.rank()) + " " + text);
        give_up(awaited, late.add(with_peer(place, missing)));
      }
      watch.logger.warning(text);
    }
  } catch (Error& error) {
    error.add(with_peer(place, awaited.missing()));
    throw;
  }
}

}  // namespace trireme::transport
