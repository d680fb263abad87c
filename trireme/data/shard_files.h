#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/base/scratch_file.h"
#include "trireme/data.h"
#include "trireme/remote/remote_files.h"

namespace trireme::data {

/// The files (shards) of a data set, whose bytes can be read at any place.
///
/// A compressed file has no places that could be reached alone: it is unpacked once, when it is opened, into a
/// file without a name, which is gone when this is or the process ends. Each process does so for itself: of many
/// gigabytes, shards that lie unpacked are the better form.
///
/// A file may lie elsewhere (`s3://..`, trireme/remote): it is fetched into the cache of the host, and read there.
///
/// Threads  immutable.
class ShardFiles {
 public:
  /// form     what the files are, for messages: "tar shard".
  /// packed   whether compressed files are unpacked, and how.
  /// Errors   kInvalidArgument without files, or for one that is none; kIo for one that is missing; kCorruptData for
  ///          one that is empty, or as `unpack` has it; kResourceExhausted beyond `max_bytes`, or for a full disk; those of
  ///          RemoteFiles, and here alone kInvalidArgument for what the environment says about it.
  ShardFiles(std::string form, std::vector<std::filesystem::path> paths,
             const std::optional<UnpackOptions>& packed = std::nullopt);

  int size() const { return static_cast<int>(shards_.size()); }

  /// For messages; of what lies elsewhere without what may be secret.
  const std::filesystem::path& path(int shard) const { return at(shard).path; }

  /// Unpacked.
  std::int64_t num_bytes(int shard) const { return at(shard).bytes; }

  /// Errors   kIo; kCorruptData, naming the shard, where it has another size than when it was opened. Of files that are
  ///          not unpacked.
  Descriptor open(int shard) const;

  /// Reads `bytes` from `begin` on, which lie in the shard. Errors of `open`.
  void read(int shard, std::int64_t begin, std::span<std::byte> bytes) const;
  std::string read_text(int shard, std::int64_t begin, std::int64_t end) const;

  /// Gives all bytes of a shard to `take`, in order, in pieces that are lent for the call. Errors of `open`.
  void scan(int shard, const std::function<void(std::span<const std::byte>)>& take) const;

  /// Throws kCorruptData: form, shard, `problem`.
  [[noreturn]] void refuse(int shard, const std::string& problem) const;

 private:
  struct Shard {
    std::filesystem::path path;
    std::int64_t bytes = 0;
    int remote = -1;          ///< In remote_; below 0: it lies here.
    std::int64_t begin = -1;  ///< In unpacked_; below 0: read where it lies.
  };

  const Shard& at(int shard) const { return shards_[static_cast<std::size_t>(shard)]; }
  void add(Shard shard, const std::optional<UnpackOptions>& packed);
  void unpack_shard(Shard& shard, const Descriptor& file, const UnpackOptions& options);
  Descriptor open(const Shard& shard) const;
  std::int64_t size_of(const Descriptor& file, const std::filesystem::path& path) const;

  std::string form_;
  std::vector<Shard> shards_;
  std::shared_ptr<const remote::RemoteFiles>
      remote_;  ///< None where nothing lies elsewhere; shared by copies.
  std::optional<ScratchFile> unpacked_;
  std::int64_t unpacked_bytes_ = 0;
};

}  // namespace trireme::data
