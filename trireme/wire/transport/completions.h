#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace trireme::transport {

/// Which of several works have ended, for one thread that waits for any of them.
///
/// Threads  safe from any thread.
class Completions {
 public:
  void push(std::size_t id) {
    const std::lock_guard lock(mutex_);
    ended_.push_back(id);
    changed_.notify_one();
  }

  /// The ids pushed since the last call, oldest first; waits for the first of them, until `limit`
  /// at most.
  std::vector<std::size_t> take(std::chrono::steady_clock::time_point limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, limit, [this] { return !ended_.empty(); });
    return std::exchange(ended_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> ended_;
};

}  // namespace trireme::transport
