#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trireme/wire/endpoint/work.h"
#include "trireme/wire/system/thread.h"

namespace trireme::backend {

/// Calls functions once works have ended, well or not, where nobody waits for these: for futures.
///
/// A function may wait for other works, and for their functions: each that is due has a thread at
/// once, of which there are as many as functions under way at most.
///
/// Threads  safe from any thread. One that looks out for ends, and those of the functions, from the
///          first call on.
class EndedWorks {
 public:
  EndedWorks() = default;
  ~EndedWorks() { close(); }
  EndedWorks(const EndedWorks&) = delete;
  EndedWorks& operator=(const EndedWorks&) = delete;

  /// Calls `then` on one of the threads when all works have ended. It must not throw.
  void when_ended(std::vector<transport::WorkPtr> works, std::function<void()> then);

  /// All works have ended: calls what is due and joins the threads. Later calls of `when_ended` call
  /// their function at once. Not from a function.
  void close();

 private:
  struct Watched {
    std::vector<transport::WorkPtr> works;  ///< The last one is watched.
    std::function<void()> then;
  };

  void look_out();
  void go_on(std::size_t id);
  void run_due();

  // shared with the works, which may end after this
  const std::shared_ptr<transport::Completions> completions_ =
      std::make_shared<transport::Completions>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Watched> watched_;
  std::size_t last_id_ = 0;  ///< 0 wakes the thread that looks out.
  std::deque<std::function<void()>> due_;
  std::size_t num_idle_ = 0;  ///< Threads that wait for functions.
  bool is_closing_ = false;
  std::optional<transport::LibraryThread> lookout_;
  std::vector<std::unique_ptr<transport::LibraryThread>> runners_;
};

}  // namespace trireme::backend
