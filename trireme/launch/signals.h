#pragma once

#include <signal.h>

#include <vector>

#include "trireme/base/descriptor.h"

namespace trireme::launch {

/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 as something to read, in place of what they do
/// otherwise; what was before comes back at the end. Those that were ignored before, as nohup has
/// it, stay ignored.
///
/// For the calling thread and those that it makes later.
class BlockedSignals {
 public:
  /// Errors   kIo.
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// Readable where a signal has come.
  const Descriptor& descriptor() const { return descriptor_; }

  /// Those that have come.
  std::vector<int> take();

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

/// While one lives, a child's end waits to be asked for, also where this process was started with
/// SIGCHLD ignored: the system would then forget how it ended. Process-wide.
class AwaitedChildren {
 public:
  AwaitedChildren();
  ~AwaitedChildren();
  AwaitedChildren(const AwaitedChildren&) = delete;
  AwaitedChildren& operator=(const AwaitedChildren&) = delete;

 private:
  struct sigaction before_{};
};

}  // namespace trireme::launch
