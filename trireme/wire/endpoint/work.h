#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"

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

/// Something under way on another thread. Buffers given to the call that returned it belong to the
/// library until it is done or has failed.
///
/// Threads  safe from any thread.
class Work {
 public:
  virtual ~Work() = default;

  /// Whether it has ended, well or not. Never blocks, and does no part of it.
  virtual bool is_done() const = 0;

  /// Blocks until it has ended or `time` has passed; returns whether it ended. Throws the error of
  /// a work that failed.
  virtual bool wait_for(std::chrono::milliseconds time) = 0;

  /// Pushes `id` to `completions` once it has ended, well or not; at once where it has. For one
  /// waiter: the last call counts.
  virtual void tell_end(std::shared_ptr<Completions> completions, std::size_t id) = 0;
};

using WorkPtr = std::shared_ptr<Work>;  // shared by whoever waits and the thread that completes it

/// A work and the means to end it, for whoever does it. The first end stays.
///
/// Threads  safe from any thread.
class PendingWork : public Work {
 public:
  /// failure   is told when an error was given to a waiter. May be null for one that cannot fail.
  explicit PendingWork(std::shared_ptr<Failure> failure) : failure_(std::move(failure)) {}

  bool is_done() const override;
  bool wait_for(std::chrono::milliseconds time) override;
  void tell_end(std::shared_ptr<Completions> completions, std::size_t id) override;

  void complete();
  void fail(const Error& error);

 private:
  void end();  // under the mutex

  const std::shared_ptr<Failure> failure_;  // shared with the endpoint, which may end before
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  std::optional<Error> error_;
  std::shared_ptr<Completions> completions_;  // shared with its waiter, which may give up before
  std::size_t id_ = 0;                        ///< Of this work in `completions_`.
};

using PendingWorkPtr = std::shared_ptr<PendingWork>;  // shared as WorkPtr is

}  // namespace trireme::transport
