#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace trireme {

/// A file's bytes in memory, read only and shared with all processes that map it; pages come when
/// they are touched. A move leaves an empty one behind.
///
/// Nobody may shorten the file meanwhile: touching what is gone ends the process (SIGBUS).
/// Threads  immutable.
class MappedFile {
 public:
  /// Errors   kInvalidArgument where `path` is no regular file; kIo, with the system's reason,
  ///          where it is missing or unreadable; kResourceExhausted where it does not fit.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace trireme
