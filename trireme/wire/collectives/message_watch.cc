#include "trireme/wire/collectives/message_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

MessageWatch::~MessageWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_one();
  }
  thread_.reset();
}

void MessageWatch::add(Message message) {
  const Clock::time_point due = transport::later(message.patience);
  const std::lock_guard lock(mutex_);
  if (messages_.size() >= forget_at_) forget_ended();
  const bool is_first = messages_.empty() || due < messages_.begin()->first;
  messages_.emplace(due, std::move(message));
  if (!thread_) thread_.emplace("messages " + members_.name, [this] { serve(); });
  if (is_first) changed_.notify_one();
}

/// So that what is kept stays within twice what is under way.
void MessageWatch::forget_ended() {
  constexpr std::size_t kLeast = 1024;
  std::erase_if(messages_, [](const auto& entry) { return entry.second.work->is_done(); });
  forget_at_ = std::max(kLeast, 2 * messages_.size());
}

void MessageWatch::serve() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (messages_.empty()) {
      changed_.wait(lock);
    } else if (const auto due = messages_.begin()->first; due > Clock::now()) {
      changed_.wait_until(lock, due);
    } else {
      const Message first = messages_.extract(messages_.begin()).mapped();
      if (first.work->is_done()) continue;
      lock.unlock();
      fail(first);
      lock.lock();
    }
  }
}

void MessageWatch::fail(const Message& late) const {
  Error error = late_error({late.peer}, late.patience);
  error.add({.rank = members_.endpoint.rank(),
             .group = members_.name,
             .operation = std::string(late.operation)});
  members_.fail(error);
}

}  // namespace trireme::collectives
