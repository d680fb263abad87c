#include "trireme/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "trireme/base/descriptor.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme {
namespace {

std::span<const std::byte> map(int file, const std::filesystem::path& path) {
  struct stat status{};
  if (::fstat(file, &status) != 0) throw_system_error("inspect", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + path.string() + "' is not a regular file; expected a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};  // the system maps no empty range
  void* begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (begin == MAP_FAILED) throw_system_error("map", path, errno);
  return {static_cast<const std::byte*>(begin), size};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) throw_system_error("open", path, errno);
  bytes_ = map(file.number(), path);  // stays when the file is closed
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace trireme
