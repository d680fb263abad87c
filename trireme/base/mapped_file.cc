#include "trireme/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "trireme/base/error.h"

namespace trireme {
namespace {

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path, int code) {
  const bool is_full = code == ENOMEM || code == EMFILE || code == ENFILE;
  throw Error(
      is_full ? ErrorKind::kResourceExhausted : ErrorKind::kIo,
      "cannot " + action + " '" + path.string() + "': " + std::generic_category().message(code));
}

std::span<const std::byte> map(int file, const std::filesystem::path& path) {
  struct stat status{};
  if (::fstat(file, &status) != 0) fail("inspect", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + path.string() + "' is not a regular file; expected a file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};  // the system maps no empty range
  void* begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (begin == MAP_FAILED) fail("map", path, errno);
  return {static_cast<const std::byte*>(begin), size};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail("open", path, errno);
  try {
    bytes_ = map(file, path);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);  // the mapping stays
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
