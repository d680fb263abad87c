#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

#include "trireme/base/descriptor.h"

namespace trireme {

/// Holds a file against other processes of the same machine, and of others where the file system
/// carries locks over. The system frees it when its holder ends, however it ends.
class FileLock {
 public:
  /// Makes the file where it is missing, and waits while another holder has it.
  ///
  /// on_wait   called once, where there is something to wait for.
  /// Errors    kIo, kResourceExhausted where the file cannot be made; kTimeout after `max_wait`.
  /// Blocking.
  FileLock(const std::filesystem::path& path, std::chrono::milliseconds max_wait,
           const std::function<void()>& on_wait = {});

  /// Nothing where another holder has it. Does not wait. Errors but kTimeout as above.
  static std::optional<FileLock> attempt(const std::filesystem::path& path);

  /// Whether the file still has this name: one that was renamed or removed meanwhile keeps nobody out.
  bool is_at(const std::filesystem::path& path) const;

 private:
  explicit FileLock(const std::filesystem::path& path);

  Descriptor file_;
};

}  // namespace trireme
