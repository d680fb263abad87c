#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/base/file_lock.h"

namespace trireme::remote {

/// A file in the cache: its name there says which state of which object it holds.
struct CacheEntry {
  std::string name;  ///< As `is_cached_name` (cache_contents.h) has it.
  std::int64_t bytes = 0;
  std::string shown;  ///< What it holds, for messages.
};

/// Files that processes of a host have fetched, in a folder that they share, of a size that is bounded.
///
///     ab12..-train-0.tar         a file that is whole
///     ab12..-train-0.tar.part    one that is being fetched: locked by who does it, already as long as it will be
///     1234-...lease              names and lengths that a process reads or will read: locked by it
///     lock                       who looks for room
///
/// Other files in the folder stay as they are.
///
/// A file is written beside and renamed; its time of modification is set to one that no write leaves, so that one which somebody
/// has written into is known, as one of another length is, and fetched again. What a disk spoils by itself is not seen here.
/// The time of the last access is when a file was held last; it is set by hand, as not all systems keep it.
///
/// Locks are the system's (flock): they end with their process. On a network file system they must be kept between hosts.
///
/// Errors   of all calls: kIo, kResourceExhausted, naming the path.
/// Threads  thread-safe.
class Cache {
 public:
  /// Entries that stay as long as this lives. A move leaves nothing behind.
  class Lease {
   public:
    ~Lease();
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;

   private:
    friend class Cache;
    Lease(std::filesystem::path path, FileLock lock);
    std::filesystem::path path_;
    std::optional<FileLock> lock_;
  };

  /// folder      made where it is missing.
  /// max_stall   how long another process may be at a file without a byte, before it is given up.
  Cache(std::filesystem::path folder, std::int64_t max_bytes, std::chrono::milliseconds max_stall);

  /// Keeps entries from being taken away, now or once they are there, and makes room for all of them: what nobody holds and was
  /// used least lately is taken away.
  ///
  /// Errors   kResourceExhausted where they and what others hold are larger than the cache.
  /// Cost     looks at all files of the cache.
  Lease hold(const std::vector<CacheEntry>& entries) const;

  /// The entry's file, open; none where it is not there, or is damaged.
  Descriptor open(const CacheEntry& entry) const;

  /// Makes an entry that is held by `fetch`, which writes all of it into the file it gets; unless another process or thread does so meanwhile,
  /// which is waited for. Where the disk has no room, what nobody holds is taken away.
  ///
  /// Errors   kResourceExhausted where there is no room on the disk; kTimeout where who fetches it has come
  ///          no further for too long; kCancelled; those of `fetch`.
  void fill(const CacheEntry& entry, const std::stop_token& stop,
            const std::function<void(const Descriptor& file)>& fetch) const;

 private:
  std::filesystem::path path(const CacheEntry& entry) const { return folder_ / entry.name; }
  FileLock wait_for_part(const CacheEntry& entry, const std::stop_token& stop) const;
  void reserve_disk(const CacheEntry& entry, const Descriptor& part) const;

  std::filesystem::path folder_;
  std::int64_t max_bytes_;
  std::chrono::milliseconds max_stall_;
};

}  // namespace trireme::remote
