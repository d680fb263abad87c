#pragma once

#include <chrono>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/wire/transport/completions.h"

namespace trireme::transport {

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

}  // namespace trireme::transport
