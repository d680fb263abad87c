#pragma once

#include <sys/types.h>

namespace trireme::data {

/// Tells a process from its children by fork, to which what a child must not use is copied too: locks that other threads held,
/// requests that the parent waits for.
///
/// Threads  immutable.
class OwnProcess {
 public:
  OwnProcess();
  ~OwnProcess();
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  /// Whether this process made it, not a child that has a copy. A look at memory, no system call, on Linux from 4.14 on.
  bool is_here() const;

 private:
  pid_t id_;
  const unsigned char* page_ = nullptr;  ///< Of zeros in children; null: the system cannot do that.
};

}  // namespace trireme::data
