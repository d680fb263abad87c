#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "trireme/base/device.h"

namespace trireme::cuda {

/// Memory of a GPU. Immutable but for its content.
class DeviceMemory {
 public:
  /// Zeros. Blocks. kResourceExhausted where there is not so much.
  DeviceMemory(int device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_), bytes_(std::exchange(other.bytes_, {})) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  /// Addresses of the GPU: of no use to the host but to hand them on.
  std::span<std::byte> bytes() const { return bytes_; }

  /// It stays as long as the process: somebody may still use it.
  void abandon() { bytes_ = {}; }

 private:
  int device_;
  std::span<std::byte> bytes_;
};

/// Another process opens memory by it.
using IpcHandle = std::array<std::byte, 64>;

/// Of memory whose size is a multiple of kIpcBytes: with less, others would see what lies beside
/// it.
IpcHandle ipc_handle(const DeviceMemory& memory);
inline constexpr std::size_t kIpcBytes = std::size_t{2} << 20;

/// Memory of a GPU that another process made, as this one sees it.
class PeerMemory {
 public:
  /// device   reads and writes it; that of the other process may be another one that it reaches.
  /// Errors   kIo, also where it does not; kUnavailable.
  PeerMemory(int device, const IpcHandle& handle);
  ~PeerMemory();
  PeerMemory(PeerMemory&& other) noexcept
      : device_(other.device_), begin_(std::exchange(other.begin_, nullptr)) {}
  PeerMemory& operator=(PeerMemory&&) = delete;

  std::byte* begin() const { return begin_; }

 private:
  int device_;
  std::byte* begin_;
};

/// What is one GPU, in all processes.
using DeviceId = std::array<std::byte, 16>;
DeviceId device_id(int device);

/// Lets `device` read and write memory of `other`, both of this process. Whether it can.
bool reach(int device, int other);

/// A number in memory of the host that kernels read and write while they run. 0 at first.
class HostFlag {
 public:
  explicit HostFlag(int device);
  ~HostFlag();
  HostFlag(const HostFlag&) = delete;
  HostFlag& operator=(const HostFlag&) = delete;

  void set(std::uint32_t value);
  std::uint32_t get() const;
  std::uint32_t* of_device() const { return of_device_; }

 private:
  [[maybe_unused]] std::uint32_t* value_ = nullptr;  // not where CUDA is absent
  std::uint32_t* of_device_ = nullptr;
};

/// Copies after the work that the stream has, between any memory of host and GPU. Both are lent
/// until it is done; with memory of the host it may block. Of a CPU's stream: at once.
void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, Stream& stream);

}  // namespace trireme::cuda
