#include "trireme/remote/retry.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::remote {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// False where a stop was asked for meanwhile.
bool sleep_unless_stopped(const std::stop_token& stop, milliseconds time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any changed;
  changed.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Retry::Retry(const RetryPolicy& policy, std::string what, std::stop_token stop)
    : policy_(policy),
      what_(std::move(what)),
      stop_(std::move(stop)),
      progress_(Clock::now()),
      // Ranks that have failed together must not come again together. It decides about times alone.
      seed_(stream_seed(static_cast<std::uint64_t>(progress_.time_since_epoch().count()),
                        {static_cast<std::uint64_t>(::getpid())})) {}

void Retry::note_progress() {
  num_tries_ = 0;
  progress_ = Clock::now();
}

milliseconds Retry::next_wait() {
  milliseconds wait = policy_.first_wait;
  for (int i = 1; i < num_tries_ && wait < policy_.longest_wait; ++i) wait *= 2;
  wait = std::min(wait, policy_.longest_wait);
  seed_ = stream_seed(seed_, {1});
  return wait / 2 + milliseconds(static_cast<std::int64_t>(seed_ >> 1) % (wait.count() / 2 + 1));
}

void Retry::wait(const std::string& problem, std::optional<std::chrono::seconds> asked_wait) {
  ++num_tries_;
  milliseconds wait = next_wait();
  // Compared as numbers of seconds: a server may ask for more than milliseconds can say.
  const bool asks_too_much =
      asked_wait && asked_wait->count() > policy_.patience / std::chrono::seconds(1);
  if (asked_wait && !asks_too_much) wait = std::max<milliseconds>(wait, *asked_wait);
  const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - progress_);
  if (asks_too_much || waited + wait > policy_.patience) {
    const std::string asked =
        asked_wait ? "; the server asks to wait " + std::to_string(asked_wait->count()) + " s" : "";
    throw Error(ErrorKind::kTimeout, what_ + " cannot be fetched: " + problem + asked +
                                         "; given up after " + std::to_string(num_tries_) +
                                         " tries and " + std::to_string(waited.count() / 1000) +
                                         " s without progress");
  }
  if (!sleep_unless_stopped(stop_, wait))
    throw Error(ErrorKind::kCancelled, "a fetch was cancelled");
}

}  // namespace trireme::remote
