#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trireme/base/descriptor.h"

namespace trireme::transport {

/// Memory that processes of a host share: a memfd. It has no name in a file system, so nothing is
/// left behind however its processes end, and nobody finds it who was not given its descriptor.
class SharedMemory {
 public:
  SharedMemory() = default;

  /// Zeros, all of them there: a page that is missing later would be a SIGBUS.
  ///
  /// name     for /proc/PID/maps. bytes: at least 1.
  /// Errors   kResourceExhausted, saying how much was asked for; kIo.
  static SharedMemory create(const std::string& name, std::size_t bytes);

  /// The same with no page yet: each is to be provided before it is used. So a rank's part is on its
  /// own NUMA node and counts against its own limit.
  static SharedMemory create_empty(const std::string& name, std::size_t bytes);

  /// The pages from `offset` on, from the memory of this process. Once they are there, it does
  /// nothing. Any process. Errors as of `create`.
  void provide(std::size_t offset, std::size_t bytes) const;

  /// Maps what another process has made; its pages may still be missing.
  ///
  /// Errors   kCorruptData where it is no sealed memfd of that size: it could shrink while it is
  ///          used; kResourceExhausted, kIo.
  static SharedMemory open(Descriptor file, std::size_t bytes);

  ~SharedMemory() { unmap(); }
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::span<std::byte> bytes() const { return bytes_; }
  const Descriptor& file() const { return file_; }

 private:
  SharedMemory(Descriptor file, std::size_t bytes);
  void unmap();

  Descriptor file_;
  std::span<std::byte> bytes_;
};

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
