#include "trireme/wire/transport/sim/loop.h"

#include <utility>

#include "trireme/wire/transport/pending_work.h"

namespace trireme::transport::internal {

SimLoop::SimLoop() : thread_("sim", [this] { serve(); }) {}

SimLoop::~SimLoop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SimLoop::post(std::function<void()> function, Clock::duration delay) {
  const std::lock_guard lock(mutex_);
  functions_.emplace(Clock::now() + delay, std::move(function));
  changed_.notify_all();
}

void SimLoop::run(const std::function<void()>& function) {
  const auto done = std::make_shared<PendingWork>(nullptr);
  post([&function, done] {
    function();
    done->complete();
  });
  done->wait_for(std::chrono::milliseconds::max());
}

void SimLoop::serve() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (functions_.empty()) {
      changed_.wait(lock);
    } else if (const auto due = functions_.begin()->first; due > Clock::now()) {
      changed_.wait_until(lock, due);
    } else {
      const auto next = functions_.extract(functions_.begin());
      lock.unlock();
      next.mapped()();
      lock.lock();
    }
  }
}

}  // namespace trireme::transport::internal
