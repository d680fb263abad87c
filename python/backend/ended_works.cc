#include "python/backend/ended_works.h"

#include <chrono>
#include <utility>

namespace trireme::backend {

void EndedWorks::when_ended(std::vector<transport::WorkPtr> works, std::function<void()> then) {
  std::unique_lock lock(mutex_);
  if (works.empty() || is_closing_) {
    lock.unlock();
    return then();
  }
  if (!lookout_) lookout_.emplace("c10d-ends", [this] { look_out(); });
  const std::size_t id = ++last_id_;
  const transport::WorkPtr first = works.back();
  watched_.emplace(id, Watched{std::move(works), std::move(then)});
  lock.unlock();
  first->tell_end(completions_, id);
}

void EndedWorks::look_out() {
  for (;;) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::hours(1);
    for (const std::size_t id : completions_->take(limit)) go_on(id);
    const std::lock_guard lock(mutex_);
    if (is_closing_ && watched_.empty()) return;
  }
}

/// The watched work of an entry has ended: the next one is watched, or its function is due.
void EndedWorks::go_on(std::size_t id) {
  std::unique_lock lock(mutex_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  std::vector<transport::WorkPtr>& works = found->second.works;
  works.pop_back();
  if (!works.empty()) {
    const transport::WorkPtr next = works.back();
    lock.unlock();
    return next->tell_end(completions_, id);
  }
  due_.push_back(std::move(found->second.then));
  watched_.erase(found);
  if (num_idle_ < due_.size()) {
    runners_.push_back(
        std::make_unique<transport::LibraryThread>("c10d-then", [this] { run_due(); }));
  }
  changed_.notify_one();
}

void EndedWorks::run_due() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++num_idle_;
    changed_.wait(lock, [this] { return !due_.empty() || (is_closing_ && watched_.empty()); });
    --num_idle_;
    if (due_.empty()) return;
    std::function<void()> then = std::move(due_.front());
    due_.pop_front();
    lock.unlock();
    then();
    then = nullptr;  // what it holds may call back
    lock.lock();
  }
}

void EndedWorks::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  completions_->push(0);
  if (lookout_) lookout_->join();
  changed_.notify_all();
  for (const auto& runner : runners_) runner->join();
}

}  // namespace trireme::backend
