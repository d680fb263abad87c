#include "trireme/base/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme {

ScratchFile::ScratchFile(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::string path = (folder_ / "trireme-XXXXXX").string();
  file_ = Descriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (!file_.is_open()) throw_system_error("make a scratch file in", folder_, errno);
  ::unlink(path.c_str());
}

std::uint64_t ScratchFile::append(std::span<const std::byte> bytes) {
  const std::uint64_t begin = size_;
  write(begin, bytes);
  return begin;
}

void ScratchFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t begin = offset;
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("write a scratch file in", folder_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
    size_ = std::max(size_, offset);
  }
  // Only a hint: pages that are on the disk can be taken for other things.
  ::sync_file_range(file_.number(), static_cast<off_t>(begin), static_cast<off_t>(offset - begin),
                    SYNC_FILE_RANGE_WRITE);
}

void ScratchFile::prefetch() const {
  ::posix_fadvise(file_.number(), 0, static_cast<off_t>(size_), POSIX_FADV_WILLNEED);
}

void ScratchFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pread(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("read a scratch file in", folder_, errno);
    if (count == 0) {
      throw Error(ErrorKind::kIo,
                  "a scratch file in '" + folder_.string() + "' is shorter than what was written");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace trireme
