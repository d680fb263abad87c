#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/data/own_process.h"
#include "trireme/data/shard_files.h"

namespace trireme::data {

/// Files of a data set that stay open: all, or where they are many those read last.
///
/// Threads  safe. A file that is closed here stays open for who still has it. A child by fork has those that stay open, and
///          opens of others its own.
class OpenFiles {
 public:
  /// files       outlive this.
  /// is_direct   whether they are read past the system's cache.
  /// max_open    at a time, 1 or more.
  /// Errors   those of `get`.
  OpenFiles(const ShardFiles& files, bool is_direct, int max_open = 256);

  /// Errors   those of ShardFiles::open; kUnavailable, naming the file, where it cannot be read past the cache.
  std::shared_ptr<const Descriptor> get(int file) const;

  /// Of offset, length and memory of reads past the cache, for all files: the largest that one wants. 1 through the cache.
  std::size_t alignment() const { return alignment_; }

  int num_open() const;

 private:
  struct Entry {
    std::shared_ptr<const Descriptor> file;
    std::int64_t used = 0;  ///< When, as `clock_` counts.
  };

  std::shared_ptr<const Descriptor> open(int file) const;
  std::shared_ptr<const Descriptor> get_last(int file) const;
  std::size_t checked_alignment(int file) const;

  const ShardFiles& files_;
  bool is_direct_;
  std::size_t max_open_;
  std::size_t alignment_ = 1;
  std::vector<std::shared_ptr<const Descriptor>>
      all_;  ///< Empty where they are more than `max_open`.
  OwnProcess process_;
  mutable std::mutex mutex_;  ///< Guards what follows.
  mutable std::map<int, Entry> open_;
  mutable std::int64_t clock_ = 0;
};

}  // namespace trireme::data
