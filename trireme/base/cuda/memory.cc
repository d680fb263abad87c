#include "trireme/base/cuda/memory.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>

#include "trireme/base/cuda/check.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/error.h"

namespace trireme::cuda {
namespace {

Device gpu(int index) { return {DeviceKind::kCuda, index}; }

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(IpcHandle));

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device) {
  const CurrentDevice current(gpu(device));
  if (bytes == 0) return;
  void* begin = nullptr;
  check(cudaMalloc(&begin, bytes), "cudaMalloc");
  bytes_ = {static_cast<std::byte*>(begin), bytes};
  // It may return before it is done, and other streams do not wait for it.
  cudaError_t code = cudaMemset(begin, 0, bytes);
  if (code == cudaSuccess) code = cudaStreamSynchronize(nullptr);
  if (code == cudaSuccess) return;
  cudaFree(begin);
  check(code, "cudaMemset");
}

DeviceMemory::~DeviceMemory() {
  if (bytes_.empty()) return;
  cudaFree(bytes_.data());
}

IpcHandle ipc_handle(const DeviceMemory& memory) {
  if (memory.bytes().empty() || memory.bytes().size() % kIpcBytes != 0) {
    throw Error(ErrorKind::kInvalidArgument, "memory for another process is a multiple of " +
                                                 std::to_string(kIpcBytes) + " bytes, not " +
                                                 std::to_string(memory.bytes().size()));
  }
  cudaIpcMemHandle_t handle;
  check(cudaIpcGetMemHandle(&handle, memory.bytes().data()), "cudaIpcGetMemHandle");
  IpcHandle bytes;
  std::memcpy(bytes.data(), &handle, bytes.size());
  return bytes;
}

PeerMemory::PeerMemory(int device, const IpcHandle& handle) : device_(device) {
  const CurrentDevice current(gpu(device));
  cudaIpcMemHandle_t bytes;
  std::memcpy(&bytes, handle.data(), handle.size());
  void* begin = nullptr;
  check(cudaIpcOpenMemHandle(&begin, bytes, cudaIpcMemLazyEnablePeerAccess),
        "cudaIpcOpenMemHandle");
  begin_ = static_cast<std::byte*>(begin);
}

PeerMemory::~PeerMemory() {
  if (begin_ == nullptr) return;
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(device_);
  cudaIpcCloseMemHandle(begin_);
  cudaSetDevice(previous);
}

DeviceId device_id(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceId id{};
  static_assert(sizeof(properties.uuid) == sizeof(id));
  std::memcpy(id.data(), &properties.uuid, id.size());
  return id;
}

bool reach(int device, int other) {
  if (device == other) return true;
  const CurrentDevice current(gpu(device));
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // or a later call would report it
    return true;
  }
  check(code, "cudaDeviceEnablePeerAccess");
  return true;
}

HostFlag::HostFlag(int device) {
  const CurrentDevice current(gpu(device));
  void* value = nullptr;
  check(cudaHostAlloc(&value, sizeof(std::uint32_t), cudaHostAllocMapped | cudaHostAllocPortable),
        "cudaHostAlloc");
  value_ = static_cast<std::uint32_t*>(value);
  *value_ = 0;
  void* seen = nullptr;
  const cudaError_t code = cudaHostGetDevicePointer(&seen, value, 0);
  if (code != cudaSuccess) cudaFreeHost(value);
  check(code, "cudaHostGetDevicePointer");
  of_device_ = static_cast<std::uint32_t*>(seen);
}

HostFlag::~HostFlag() { cudaFreeHost(value_); }

void HostFlag::set(std::uint32_t value) {
  std::atomic_ref<std::uint32_t>(*value_).store(value, std::memory_order_release);
}

std::uint32_t HostFlag::get() const {
  return std::atomic_ref<std::uint32_t>(*value_).load(std::memory_order_acquire);
}

void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, Stream& stream) {
  if (to.size() != from.size()) {
    throw Error(ErrorKind::kInvalidArgument, "a copy of " + std::to_string(from.size()) +
                                                 " bytes to " + std::to_string(to.size()));
  }
  if (to.empty() || to.data() == from.data()) return;
  if (stream.device().kind == DeviceKind::kCpu) {
    std::memmove(to.data(), from.data(), to.size());
    return;
  }
  check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDefault, handle_of(stream)),
        "cudaMemcpyAsync");
}

}  // namespace trireme::cuda
