#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace trireme::collectives {

/// A rank's part in an operation: a coroutine that is suspended wherever other ranks are not there
/// yet, so that whichever thread has time can go on with it.
///
/// Caller-synchronised.
class Task {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }

    std::exception_ptr failure;
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool is_done() const { return handle_.done(); }

  /// Goes on to where it waits next, or to its end. Throws what ended it.
  void resume() {
    handle_.resume();
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace trireme::collectives
