#include "trireme/wire/system/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string what(std::size_t bytes) { return std::to_string(bytes) + " bytes of shared memory"; }

/// Asks for all pages: where there are too few, the error, which errno has, comes now.
///
/// Many kernels undo the work of a call at a signal, so that one for all of it might never get
/// through under a profiler's timer: pieces of a fraction of a millisecond each.
bool allocate(const Descriptor& file, off_t begin, off_t end) {
  constexpr off_t kPiece = off_t{2} << 20;
  for (; begin < end; begin += kPiece) {
    const off_t piece = std::min(kPiece, end - begin);
    while (::fallocate(file.number(), 0, begin, piece) != 0) {
      if (errno != EINTR) return false;
    }
  }
  return true;
}

}  // namespace

SharedMemory SharedMemory::create(const std::string& name, std::size_t bytes) {
  SharedMemory memory = create_empty(name, bytes);
  memory.provide(0, bytes);
  return memory;
}

SharedMemory SharedMemory::create_empty(const std::string& name, std::size_t bytes) {
  Descriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) throw_system_error("make " + what(bytes), errno);
  const auto size = static_cast<off_t>(bytes);
  const bool is_made =
      ::ftruncate(file.number(), size) == 0 && ::fcntl(file.number(), F_ADD_SEALS, kSeals) == 0;
  if (!is_made) throw_system_error("make " + what(bytes), errno);
  return {std::move(file), bytes};
}

void SharedMemory::provide(std::size_t offset, std::size_t bytes) const {
  const auto begin = static_cast<off_t>(offset);
  if (!allocate(file_, begin, begin + static_cast<off_t>(bytes))) {
    throw_system_error("make " + what(bytes), errno);
  }
#ifdef MADV_POPULATE_WRITE
  // Else page by page, at the first use.
  [[maybe_unused]] const int is_mapped =
      ::madvise(bytes_.data() + offset, bytes, MADV_POPULATE_WRITE);
#endif
}

SharedMemory SharedMemory::open(Descriptor file, std::size_t bytes) {
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw_system_error("look at shared memory", errno);
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (status.st_size != static_cast<off_t>(bytes) || seals < 0 || (seals & kSeals) != kSeals) {
    throw Error(ErrorKind::kCorruptData, "expected " + what(bytes) + " that are sealed, got " +
                                             std::to_string(status.st_size) + " bytes");
  }
  return {std::move(file), bytes};
}

SharedMemory::SharedMemory(Descriptor file, std::size_t bytes) : file_(std::move(file)) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (begin == MAP_FAILED) throw_system_error("map " + what(bytes), errno);
  bytes_ = {static_cast<std::byte*>(begin), bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void SharedMemory::unmap() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

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
