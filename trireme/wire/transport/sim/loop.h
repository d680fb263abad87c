#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "trireme/wire/transport/thread.h"

namespace trireme::transport::internal {

/// One thread that runs functions at their times, those of one time in the order given.
///
/// Threads  safe from any thread.
class SimLoop {
 public:
  using Clock = std::chrono::steady_clock;

  SimLoop();
  ~SimLoop();  ///< Functions not run yet are dropped.

  void post(std::function<void()> function, Clock::duration delay = {});

  /// As `post`, and blocks until it was run. Not from a function of the loop.
  void run(const std::function<void()>& function);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> functions_;
  bool is_stopping_ = false;
  LibraryThread thread_;  // last: it uses the others
};

}  // namespace trireme::transport::internal
