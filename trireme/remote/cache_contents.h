#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/descriptor.h"

namespace trireme::remote {

constexpr std::string_view kPartEnding = ".part", kLeaseEnding = ".lease";

/// Whether a file of this name is the cache's: 32 hexadecimal digits, a hyphen, and so on. What else lies in the folder, which may
/// be any that somebody has named, is not touched.
bool is_cached_name(std::string_view name);

/// How many bytes each file has that a process holds, by name; whether they are there yet or not.
using HeldFiles = std::map<std::string, std::int64_t>;

/// The text of a lease.
std::string lease_text(const HeldFiles& files);

/// What a cache takes up in its folder, for who has its lock. Caller-synchronised; kIo.
class CacheContents {
 public:
  /// Looks, and removes what processes have left that have ended: leases, parts.
  explicit CacheContents(const std::filesystem::path& folder);

  /// From now on these are held, too.
  void hold(const HeldFiles& files) { held_.insert(files.begin(), files.end()); }

  std::int64_t held_bytes() const;
  std::int64_t loose_bytes() const;  ///< Of files that nobody holds.

  /// Removes the file that was used least lately among those that nobody holds. False where there is none.
  bool remove_oldest();

 private:
  struct File {
    std::filesystem::path path;
    std::int64_t bytes = 0;
    std::int64_t used_at = 0;  ///< Nanoseconds.
  };

  bool is_held(const File& file) const { return held_.contains(file.path.filename().string()); }

  HeldFiles held_;
  std::vector<File> files_;
};

/// Takes room on the disk for a file of this length, which it then has. False, with errno, where there is none.
///
/// Errors   kIo.
bool reserve(const Descriptor& file, std::int64_t bytes);

}  // namespace trireme::remote
