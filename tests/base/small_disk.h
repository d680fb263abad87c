#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

namespace trireme::test {

/// A file system of its own over a folder, seen by this process and those it starts alone, until
/// the guard is left. Mounting needs root, and "/" to be a mount point: a test skips where
/// `is_there` says no.
class SmallDisk {
 public:
  /// size   as of tmpfs, e.g. `64k`.
  SmallDisk(std::filesystem::path folder, const std::string& size) : folder_(std::move(folder)) {
    is_there_ = has_own_mounts() &&
                ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount(folder_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }

  bool resize(const std::string& size) const {
    return ::mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT, ("size=" + size).c_str()) == 0;
  }
  bool make_read_only() const {
    return ::mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  /// Looks first: in a chroot the process would leave its mounts and could not make its own
  /// private.
  static bool has_own_mounts() {
    struct statx root{};
    return ::statx(AT_FDCWD, "/", 0, 0, &root) == 0 &&
           (root.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && ::unshare(CLONE_NEWNS) == 0 &&
           ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }

  std::filesystem::path folder_;
  bool is_there_ = false;
};

}  // namespace trireme::test
