#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trireme::transport {

/// The memory of another process of this host, read without its help: one copy, by
/// process_vm_readv.
class ProcessMemory {
 public:
  /// Nothing where the kernel does not let this process read there: that of another user, of
  /// another PID namespace, or where tracing is forbidden (a container, kernel.yama.ptrace_scope).
  static std::optional<ProcessMemory> open(pid_t process);

  /// Lets processes of this user read this one's memory where Yama lets them read that of their
  /// children only (kernel.yama.ptrace_scope is 1, as in Ubuntu): those that could without Yama.
  static void permit();

  /// Fills `memory` with what is at `address` there. Blocks while it copies.
  ///
  /// Returns  0, or the error number of the system: ESRCH where the process has ended, EFAULT where
  ///          it has no such memory.
  int read(std::uint64_t address, std::span<std::byte> memory) const;

 private:
  explicit ProcessMemory(pid_t process) : process_(process) {}

  pid_t process_;
};

}  // namespace trireme::transport
