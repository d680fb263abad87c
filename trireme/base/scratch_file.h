#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "trireme/base/descriptor.h"

namespace trireme {

/// A file without a name: its space is free again once this ends, or the process does, however that
/// happens. For what memory has no room for. Caller-synchronised; several may read at once.
///
/// Errors   of every call: kIo or, for a full disk, kResourceExhausted, naming the folder.
class ScratchFile {
 public:
  /// In a folder, which exists.
  explicit ScratchFile(std::filesystem::path folder);

  /// At the end. Goes to the system's cache of files, which it is asked to write out in the background: blocks where more
  /// waits for the disk than the system allows.
  ///
  /// Returns   the offset at which the bytes begin: what a call wrote that failed stays in front of it.
  std::uint64_t append(std::span<const std::byte> bytes);

  /// At `offset`, over what lies there or behind the end, for a file whose space is used again; `append` goes on behind all.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Asks the system to have the file in memory soon; does not block.
  void prefetch() const;

  /// Blocks until all `bytes` from `offset` on are there.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path folder_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace trireme
