#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/remote/cache.h"
#include "trireme/remote/objects.h"

namespace trireme::remote {

/// Files of one data set that lie elsewhere, as they were when this was made.
///
/// All are fetched then, once for all processes of a host, on several threads in their order, and stay in the cache until this ends;
/// so a read never waits for a network, unless somebody has removed the file or written into it: then it is fetched again.
///
/// Errors   those of Objects and Cache, naming the file; the first ends all fetches.
/// Threads  immutable.
class RemoteFiles {
 public:
  /// Blocks until all are there; asks for each once even if the cache has it, since it may have changed.
  explicit RemoteFiles(const std::vector<std::filesystem::path>& names,
                       RemoteEnvironment environment, RetryPolicy policy = {});

  int size() const { return static_cast<int>(files_.size()); }

  /// The file in the cache. Of what has changed in its place meanwhile it fetches nothing: kIo.
  Descriptor open(int file) const;

 private:
  struct File {
    std::filesystem::path name;
    ObjectVersion version;
    CacheEntry entry;
  };

  void fill(const File& file, const std::stop_token& stop) const;

  Objects objects_;
  Cache cache_;
  std::vector<File> files_;
  std::optional<Cache::Lease> lease_;
};

}  // namespace trireme::remote
