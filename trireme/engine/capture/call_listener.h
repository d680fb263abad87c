#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace trireme::capture {

/// Told of each operator of this thread as autograd calls what computes: after what torch composes of others is taken
/// apart, before a kernel is chosen. Not of those that kernels call.
class CallListener {
 public:
  virtual ~CallListener() = default;

  /// Before the call and after it, alternately; what they throw leaves the operator.
  virtual void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) = 0;
  virtual void after(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> results) = 0;
};

/// While it lives, calls of this thread are told to `listener`, and those of a backward that the thread runs.
///
/// Errors   kUnavailable where another library uses the place in torch's dispatcher that this needs.
/// Cost     of the boxing of arguments, for each operator.
class Listening {
 public:
  explicit Listening(CallListener& listener);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  CallListener* before_;
};

/// While it lives, calls of this thread are told to nobody.
class ListeningPause {
 public:
  ListeningPause();
  ~ListeningPause();
  ListeningPause(const ListeningPause&) = delete;
  ListeningPause& operator=(const ListeningPause&) = delete;

 private:
  bool was_excluded_;
};

}  // namespace trireme::capture
