#include "trireme/wire/endpoint/work.h"

#include <algorithm>

namespace trireme::transport {

bool PendingWork::is_done() const {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

bool PendingWork::wait_for(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);  // no overflow
  std::unique_lock lock(mutex_);
  if (!ended_.wait_for(lock, std::min(time, kLongest), [this] { return is_done_; })) return false;
  if (!error_) return true;
  lock.unlock();
  failure_->mark_given();
  throw Error(*error_);  // constant from now on
}

void PendingWork::tell_end(std::shared_ptr<Completions> completions, std::size_t id) {
  const std::lock_guard lock(mutex_);
  if (is_done_) return completions->push(id);
  completions_ = std::move(completions);
  id_ = id;
}

void PendingWork::end() {
  is_done_ = true;
  ended_.notify_all();
  if (completions_) completions_->push(id_);
}

void PendingWork::complete() {
  const std::lock_guard lock(mutex_);
  if (!is_done_) end();
}

void PendingWork::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (is_done_) return;
  error_ = error;
  end();
}

}  // namespace trireme::transport
