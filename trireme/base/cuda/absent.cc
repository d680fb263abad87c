// In place of stream.cc and memory.cc where there was no CUDA toolkit.

#include <cstring>

#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"

namespace trireme::cuda {
namespace {

Error absent() {
  return {
      ErrorKind::kUnavailable,
      "this program was built without CUDA and drives CPUs only; configure the build anew where "
      "nvcc is in PATH, with -DTRIREME_CUDA=ON, or use device cpu"};
}

}  // namespace

std::unique_ptr<Stream> make_stream(int /*index*/) { throw absent(); }
std::unique_ptr<Stream> borrow_stream(int /*index*/, CUstream_st* /*handle*/) { throw absent(); }
std::unique_ptr<Event> make_event(int /*index*/) { throw absent(); }
CUstream_st* handle_of(Stream& /*stream*/) { return nullptr; }
bool is_capturing(Stream& /*stream*/) { return false; }
std::optional<Error> why_no_gpu() { return absent(); }
int count_gpus() { throw absent(); }

CurrentDevice::CurrentDevice(const Device& device) {
  if (device.kind == DeviceKind::kCuda) throw absent();
}
CurrentDevice::~CurrentDevice() = default;

DeviceMemory::DeviceMemory(int device, std::size_t /*bytes*/) : device_(device) { throw absent(); }
DeviceMemory::~DeviceMemory() = default;
IpcHandle ipc_handle(const DeviceMemory& /*memory*/) { throw absent(); }
PeerMemory::PeerMemory(int device, const IpcHandle& /*handle*/) : device_(device), begin_(nullptr) {
  throw absent();
}
PeerMemory::~PeerMemory() = default;
DeviceId device_id(int /*device*/) { throw absent(); }
bool reach(int /*device*/, int /*other*/) { throw absent(); }
HostFlag::HostFlag(int /*device*/) { throw absent(); }
HostFlag::~HostFlag() = default;
void HostFlag::set(std::uint32_t /*value*/) {}
std::uint32_t HostFlag::get() const { return 0; }

void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, Stream& /*stream*/) {
  if (to.size() != from.size()) {
    throw Error(ErrorKind::kInvalidArgument, "a copy of " + std::to_string(from.size()) +
                                                 " bytes to " + std::to_string(to.size()));
  }
  if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
}

}  // namespace trireme::cuda
