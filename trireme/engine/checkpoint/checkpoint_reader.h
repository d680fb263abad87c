#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "trireme/base/safetensors.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"

namespace trireme::checkpoint {

/// Whether a reader compares files with their checksums before it reads from them.
enum class Checksums : std::uint8_t {
  kCompare,
  kCompared,  ///< Somebody has done so: ranks divide that work (train::newest_whole).
};

/// A published checkpoint. Caller-synchronised.
class Reader {
 public:
  /// Reads the index and looks that all its files are there, as long as they should be.
  ///
  /// Errors   kIo and kCorruptData, naming the file.
  explicit Reader(std::filesystem::path folder, Checksums checksums = Checksums::kCompare);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const Index& index() const { return index_; }
  bool has(const std::string& key) const { return index_.contents.tensors.contains(key); }

  /// Copies a tensor into `destination`, of any strides on CPU. The first read from a file compares
  /// the file with its checksum.
  ///
  /// Errors   kInvalidArgument where there is no such tensor, or of another shape or dtype;
  ///          kCorruptData where a file is not the one that was written.
  void read(const std::string& key, const at::Tensor& destination);

  /// The same for the rows from `begin` on, as many as the destination has; one without dimensions has one.
  void read_rows(const std::string& key, std::int64_t begin, const at::Tensor& destination);

  /// The tensor in memory of its own.
  at::Tensor read(const std::string& key);

  /// Compares files with their checksums, and what is in them with the index: all of them, or every
  /// `parts`-th from `part` on.
  void verify(std::size_t part = 0, std::size_t parts = 1);

 private:
  struct Shard;

  const TensorEntry& entry(const std::string& key) const;
  Shard& shard(const std::string& file);
  const safetensors::Tensor& stored(const std::string& key, const TensorEntry& tensor,
                                    const Slice& slice);

  std::filesystem::path folder_;
  Checksums checksums_;
  Index index_;
  std::map<std::string, std::unique_ptr<Shard>> shards_;
};

}  // namespace trireme::checkpoint
