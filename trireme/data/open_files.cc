#include "trireme/data/open_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include "trireme/data/aligned_buffers.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::size_t kUsualAlignment = 4096;

/// What the file system says; 0: it cannot; kUsualAlignment where it says nothing.
std::size_t stated_alignment([[maybe_unused]] const Descriptor& file) {
#ifdef STATX_DIOALIGN
  struct statx status{};
  const int result = ::statx(file.number(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status);
  if (result == 0 && (status.stx_mask & STATX_DIOALIGN) != 0) {
    return std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
  }
#endif
  return kUsualAlignment;
}

}  // namespace

OpenFiles::OpenFiles(const ShardFiles& files, bool is_direct, int max_open)
    : files_(files),
      is_direct_(is_direct),
      max_open_(static_cast<std::size_t>(std::max(1, max_open))) {
  const bool keeps_all = files_.size() <= max_open;
  for (int file = 0; file < files_.size() && (keeps_all || is_direct); ++file) {
    if (keeps_all) all_.push_back(open(file));
    if (is_direct) alignment_ = std::max(alignment_, checked_alignment(file));
  }
}

/// Reads once: a file system may take the flag and refuse the read.
std::size_t OpenFiles::checked_alignment(int file) const {
  const auto direct = get(file);
  const std::size_t alignment = stated_alignment(*direct);
  int code = EINVAL;
  if (alignment > 0 && std::has_single_bit(alignment)) {
    AlignedBuffers buffers(alignment, 0);
    const auto buffer = buffers.get(alignment);
    const ssize_t got = ::pread(direct->number(), buffer.bytes().data(), alignment, 0);
    if (got >= 0) return alignment;
    code = errno;
  }
  throw Error(ErrorKind::kUnavailable, "'" + files_.path(file).string() +
                                           "' cannot be read past the system's cache: " +
                                           std::generic_category().message(code));
}

std::shared_ptr<const Descriptor> OpenFiles::open(int file) const {
  auto opened = std::make_shared<const Descriptor>(files_.open(file));
  if (!is_direct_) return opened;
  const int flags = ::fcntl(opened->number(), F_GETFL);
  if (flags >= 0 && ::fcntl(opened->number(), F_SETFL, flags | O_DIRECT) == 0) return opened;
  throw Error(ErrorKind::kUnavailable, "'" + files_.path(file).string() +
                                           "' cannot be read past the system's cache: " +
                                           std::generic_category().message(errno));
}

std::shared_ptr<const Descriptor> OpenFiles::get(int file) const {
  return all_.empty() ? get_last(file) : all_[static_cast<std::size_t>(file)];
}

std::shared_ptr<const Descriptor> OpenFiles::get_last(int file) const {
  if (!process_.is_here()) return open(file);
  const std::scoped_lock lock(mutex_);
  if (const auto found = open_.find(file); found != open_.end()) {
    found->second.used = ++clock_;
    return found->second.file;
  }
  if (open_.size() >= max_open_) {
    open_.erase(
        std::ranges::min_element(open_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  auto opened = open(file);
  open_[file] = {.file = opened, .used = ++clock_};
  return opened;
}

int OpenFiles::num_open() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(std::max(all_.size(), open_.size()));
}

}  // namespace trireme::data
