#include "trireme/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <thread>

#include "trireme/base/inheritance.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme {
namespace {

constexpr std::chrono::milliseconds kPause{50};

/// Whether nobody else has it.
bool try_lock(int file, const std::filesystem::path& path) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) throw_system_error("lock", path, errno);
    return false;
  }
  return true;
}

/// Waits for the lock of an open file.
void wait_for_lock(int file, const std::filesystem::path& path, std::chrono::milliseconds max_wait,
                   const std::function<void()>& on_wait) {
  const auto deadline = std::chrono::steady_clock::now() + max_wait;
  bool is_told = false;
  while (!try_lock(file, path)) {
    if (!is_told && on_wait) on_wait();
    is_told = true;
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(ErrorKind::kTimeout, "another process has held '" + path.string() + "' for " +
                                           std::to_string(max_wait.count()) + " ms");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) throw_system_error("open the lock", path, errno);
  keep_from_children(file_);  // which would hold it beyond the end of this process
}

FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds max_wait,
                   const std::function<void()>& on_wait)
    : FileLock(path) {
  wait_for_lock(file_.number(), path, max_wait, on_wait);
}

std::optional<FileLock> FileLock::attempt(const std::filesystem::path& path) {
  FileLock lock(path);
  if (!try_lock(lock.file_.number(), path)) return std::nullopt;
  return lock;
}

bool FileLock::is_at(const std::filesystem::path& path) const {
  struct stat held{}, named{};
  return ::fstat(file_.number(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace trireme
