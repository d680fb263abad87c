#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "trireme/wire/transport/failure.h"
#include "trireme/wire/transport/work.h"

namespace trireme::transport {

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
