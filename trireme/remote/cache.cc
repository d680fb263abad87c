#include "trireme/remote/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/remote/cache_contents.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kLockWait = 60s;             // for who looks for room: a matter of milliseconds
constexpr std::int64_t kStamp = 946684800;  // 2000-01-01: no write is so old

bool is_whole(const struct stat& status, std::int64_t bytes) {
  return S_ISREG(status.st_mode) && status.st_size == bytes && status.st_mtim.tv_sec == kStamp;
}

/// Of the last write; none where there is no such file.
std::optional<std::int64_t> written_at(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

/// UTIME_NOW goes by the kernel's ticks, which are milliseconds apart: two files would have been used at the same time.
timespec precise_now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

/// Puts a file whose content is complete onto the disk, as one that is whole.
void seal(const Descriptor& file, const fs::path& path) {
  const timespec times[] = {precise_now(), {.tv_sec = kStamp, .tv_nsec = 0}};
  if (::futimens(file.number(), times) != 0) throw_system_error("set the time of", path, errno);
  if (::fsync(file.number()) != 0) throw_system_error("sync", path, errno);
}

/// Says that it was used now. What is not there, or another user's, stays as it is.
void touch(const fs::path& path) {
  const timespec times[] = {precise_now(), {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

/// Removes a part in the end, where it has not been renamed.
class PartGuard {
 public:
  PartGuard(const FileLock& lock, const fs::path& part) : lock_(lock), part_(part) {}
  ~PartGuard() {
    if (lock_.is_at(part_)) ::unlink(part_.c_str());  // else the name may be another's by now
  }
  PartGuard(const PartGuard&) = delete;
  PartGuard& operator=(const PartGuard&) = delete;

 private:
  const FileLock& lock_;
  const fs::path& part_;
};

}  // namespace

Cache::Lease::Lease(fs::path path, FileLock lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

Cache::Lease::Lease(Lease&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

Cache::Lease::~Lease() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Cache::Cache(fs::path folder, std::int64_t max_bytes, std::chrono::milliseconds max_stall)
    : folder_(std::move(folder)), max_bytes_(max_bytes), max_stall_(max_stall) {
  make_folder(folder_);
}

Cache::Lease Cache::hold(const std::vector<CacheEntry>& entries) const {
  HeldFiles files;
  for (const CacheEntry& entry : entries) files[entry.name] = entry.bytes;
  const FileLock lock(folder_ / "lock", kLockWait);
  CacheContents contents(folder_);
  const std::int64_t by_others = contents.held_bytes();
  contents.hold(files);
  if (contents.held_bytes() > max_bytes_) {
    const std::int64_t bytes = contents.held_bytes() - by_others;
    const std::string others =
        by_others > 0 ? ", and others are reading " + std::to_string(by_others) : "";
    throw Error(ErrorKind::kResourceExhausted,
                "there is no room for the " + std::to_string(bytes) + " bytes of " +
                    std::to_string(files.size()) + " files, of which the first is '" +
                    entries.front().shown + "': the cache '" + folder_.string() + "' may have " +
                    std::to_string(max_bytes_) + others +
                    "; set TRIREME_CACHE_SIZE, and TRIREME_CACHE_DIR to a disk that has room");
  }
  while (contents.held_bytes() + contents.loose_bytes() > max_bytes_ && contents.remove_oldest()) {
  }
  std::string path = (folder_ / (std::to_string(::getpid()) + "-XXXXXX")).string();
  path += kLeaseEnding;
  const Descriptor made(::mkostemps(path.data(), std::ssize(kLeaseEnding), O_CLOEXEC));
  if (!made.is_open()) throw_system_error("make a lease in", folder_, errno);
  Lease lease(path, FileLock(path, 0ms));
  const std::string text = lease_text(files);
  FileWriter(path).write(std::as_bytes(std::span(text)));
  for (const CacheEntry& entry : entries) touch(this->path(entry));
  return lease;
}

Descriptor Cache::open(const CacheEntry& entry) const {
  Descriptor file(::open(path(entry).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() && errno != ENOENT) throw_system_error("open", path(entry), errno);
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 || !is_whole(status, entry.bytes)) {
    return {};
  }
  return file;
}

FileLock Cache::wait_for_part(const CacheEntry& entry, const std::stop_token& stop) const {
  fs::path part = path(entry);
  part += kPartEnding;
  auto moved = std::chrono::steady_clock::now();
  for (std::optional<std::int64_t> seen;;) {
    if (std::optional<FileLock> lock = FileLock::attempt(part)) return std::move(*lock);
    const auto now = std::chrono::steady_clock::now();
    if (const auto written = written_at(part); written != seen) {
      seen = written;
      moved = now;
    }
    if (now - moved > max_stall_) {
      throw Error(ErrorKind::kTimeout, "'" + entry.shown +
                                           "' is being fetched by another process into '" +
                                           part.string() + "', which has come no further for " +
                                           std::to_string(max_stall_.count() / 1000) + " s");
    }
    if (stop.stop_requested()) throw Error(ErrorKind::kCancelled, "a fetch was cancelled");
    std::this_thread::sleep_for(20ms);
  }
}

void Cache::fill(const CacheEntry& entry, const std::stop_token& stop,
                 const std::function<void(const Descriptor& file)>& fetch) const {
  fs::path part = path(entry);
  part += kPartEnding;
  while (!open(entry).is_open()) {
    const FileLock lock = wait_for_part(entry, stop);
    if (!lock.is_at(part)) continue;  // who had it is done, well or badly
    const PartGuard guard(lock, part);
    if (open(entry).is_open()) return;
    ::unlink(path(entry).c_str());  // one that is damaged
    const Descriptor file(::open(part.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open()) throw_system_error("open", part, errno);
    reserve_disk(entry, file);  // a full disk is known before anything is fetched
    fetch(file);
    seal(file, part);
    // After a power cut it may have its old name again, and is fetched again; its content was synced.
    if (::rename(part.c_str(), path(entry).c_str()) != 0) throw_system_error("rename", part, errno);
  }
}

void Cache::reserve_disk(const CacheEntry& entry, const Descriptor& part) const {
  while (!reserve(part, entry.bytes)) {
    const std::string reason = std::error_code(errno, std::generic_category()).message();
    const FileLock lock(folder_ / "lock", kLockWait);
    if (CacheContents(folder_).remove_oldest()) continue;
    throw Error(ErrorKind::kResourceExhausted,
                "there is no room for the " + std::to_string(entry.bytes) + " bytes of '" +
                    entry.shown + "' in the cache '" + folder_.string() + "': " + reason +
                    "; set TRIREME_CACHE_DIR to a folder that has");
  }
}

}  // namespace trireme::remote
