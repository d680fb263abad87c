#include "trireme/wire/transport/gate.h"

#include <sys/resource.h>

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kReportEvery{10'000};
constexpr milliseconds kFirstReportAfter{1'000};  // so that a burst is one line
constexpr milliseconds kRestAtLeast{50};

/// A quarter of the descriptors that the process may have.
std::size_t limit_of_strangers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 16, 4096));
}

const char* reason(Admission::State state) {
  switch (state) {
    case Admission::State::kClosed:
      return "went away";
    case Admission::State::kGarbage:
      return "did not speak our protocol";
    default:
      return "had another token";
  }
}

}  // namespace

Gate::Gate(Descriptor listener, Poller& poller, GateOptions options)
    : listener_(std::move(listener)),
      poller_(poller),
      options_(std::move(options)),
      max_strangers_(options_.max_strangers > 0 ? static_cast<std::size_t>(options_.max_strangers)
                                                : limit_of_strangers()),
      next_report_(Clock::now()) {
  poller_.add(listener_, kFirstId);
}

Gate::~Gate() {
  next_report_ = {};
  report();
}

std::optional<Descriptor> Gate::serve(const Poller::Event& event) {
  if (event.id == kFirstId) {
    accept_all();
    return std::nullopt;
  }
  const auto found = strangers_.find(event.id);
  if (found == strangers_.end()) return std::nullopt;
  Admission& admission = found->second.admission;
  Admission::State state = Admission::State::kClosed;
  try {
    state = admission.hear();
  } catch (const Error&) {  // its connection is broken
    state = Admission::State::kClosed;
  }
  if (state == Admission::State::kHearing) return std::nullopt;
  std::optional<Descriptor> admitted;
  if (state == Admission::State::kAdmitted) {
    poller_.remove(admission.socket());
    admitted = admission.take_socket();
  } else {
    refuse(reason(state));
  }
  strangers_.erase(found);
  return admitted;
}

void Gate::accept_all() {
  try {
    while (strangers_.size() < max_strangers_) {
      std::optional<Descriptor> socket = accept_from(listener_);
      if (!socket) return;
      accept(std::move(*socket));
    }
  } catch (const Error&) {  // out of descriptors: those who wait get in later
  }
  rest(true);
}

void Gate::accept(Descriptor socket) {
  if (options_.may_try && !options_.may_try(socket)) return refuse("are of another user");
  const std::uint64_t id = ++last_id_;
  const auto [place, is_new] = strangers_.try_emplace(
      id, Stranger{Admission(std::move(socket), options_.token, options_.door), Clock::now()});
  poller_.add(place->second.admission.socket(), id);
}

void Gate::rest(bool is_resting) {
  if (is_resting == resting_since_.has_value()) return;
  poller_.change(listener_, kFirstId, {.in_reading = !is_resting});
  resting_since_ = is_resting ? std::optional(Clock::now()) : std::nullopt;
}

milliseconds Gate::patience() const {
  return resting_since_ ? options_.patience_when_full : options_.patience;
}

void Gate::expire() {
  const Deadline now = Clock::now();
  while (!strangers_.empty() && now >= strangers_.begin()->second.since + patience()) {
    refuse("said too little in time");
    strangers_.erase(strangers_.begin());
  }
  if (resting_since_ && strangers_.size() < max_strangers_ &&
      now >= *resting_since_ + kRestAtLeast) {
    rest(false);
  }
  report();
}

Deadline Gate::next_deadline() const {
  Deadline next = Deadline::max();
  if (!strangers_.empty()) next = strangers_.begin()->second.since + patience();
  if (resting_since_ && strangers_.size() < max_strangers_) {
    next = std::min(next, *resting_since_ + kRestAtLeast);
  }
  if (!num_refused_.empty()) next = std::min(next, next_report_);
  return next;
}

void Gate::refuse(const std::string& why) {
  if (num_refused_.empty()) {
    next_report_ = std::max(next_report_, Clock::now() + kFirstReportAfter);
  }
  ++num_refused_[why];
}

void Gate::report() {
  if (num_refused_.empty() || Clock::now() < next_report_) return;
  std::string counts;
  for (const auto& [why, count] : num_refused_) {
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + why;
  }
  options_.logger.warning("refused connections to the " + options_.door + ": " + counts);
  num_refused_.clear();
  next_report_ = Clock::now() + kReportEvery;
}

}  // namespace trireme::transport
