#pragma once

#include <cstddef>
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

}  // namespace trireme::transport
