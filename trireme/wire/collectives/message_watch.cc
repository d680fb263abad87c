#include "trireme/wire/collectives/message_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/wire/endpoint/watch.h"

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

/// Of other tags, or from others: one may be what was waited for.
std::string MessageWatch::others_text() const {
  constexpr std::size_t kMost = 3;
  const auto waiting = members_.endpoint.messages().waiting(Members::first_tag(members_.id));
  if (waiting.empty()) return "";
  std::string text = "; nobody has asked for ";
  for (std::size_t i = 0; i < std::min(waiting.size(), kMost); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(waiting[i].bytes) + " bytes of rank " +
            std::to_string(waiting[i].source) + " with tag " + std::to_string(waiting[i].label.tag);
  }
  return waiting.size() > kMost ? text + " and others" : text;
}

void MessageWatch::fail(const Message& late) const {
  std::vector<int> peers = late.peers;
  if (peers.size() > 1) std::erase(peers, members_.endpoint.rank());
  const Error plain = late_error(peers, late.patience);
  Error error(plain.kind(), plain.message() + " (a " + std::string(late.operation) + " with tag " +
                                std::to_string(late.tag) + others_text() + ")");
  error.add(plain.context());
  error.add({.rank = members_.endpoint.rank(),
             .group = members_.name,
             .operation = std::string(late.operation)});
  members_.fail(error);
}

}  // namespace trireme::collectives
