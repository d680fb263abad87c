#include "trireme/wire/transport/shm/process_memory.h"

#include <sys/prctl.h>
#include <sys/uio.h>

#include <cerrno>

namespace trireme::transport {
namespace {

/// Bytes read, or -1 and errno.
ssize_t read_once(pid_t process, std::uint64_t address, std::span<std::byte> memory) {
  iovec to{memory.data(), memory.size()};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
  iovec from{reinterpret_cast<void*>(address), memory.size()};
  return ::process_vm_readv(process, &to, 1, &from, 1, 0);
}

}  // namespace

std::optional<ProcessMemory> ProcessMemory::open(pid_t process) {
  if (process <= 0) return std::nullopt;
  // Whether it may is asked before the address is looked at, which is none.
  std::byte byte{};
  const ssize_t count = read_once(process, 0, {&byte, 1});
  if (count < 0 && errno != EFAULT) return std::nullopt;
  return ProcessMemory(process);
}

void ProcessMemory::permit() {
  // Without Yama it is refused, and nothing is needed.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

int ProcessMemory::read(std::uint64_t address, std::span<std::byte> memory) const {
  while (!memory.empty()) {
    const ssize_t count = read_once(process_, address, memory);
    if (count < 0) return errno;
    if (count == 0) return EFAULT;
    memory = memory.subspan(static_cast<std::size_t>(count));
    address += static_cast<std::uint64_t>(count);
  }
  return 0;
}

}  // namespace trireme::transport
