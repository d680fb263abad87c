#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "trireme/engine/checkpoint/index.h"

namespace trireme::checkpoint {

/// A published checkpoint. Caller-synchronised.
class Reader {
 public:
  /// Reads the index and looks that all its files are there, as long as they should be.
  ///
  /// Errors   kIo and kCorruptData, naming the file.
  explicit Reader(std::filesystem::path folder);
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

  /// The tensor in memory of its own.
  at::Tensor read(const std::string& key);

  /// Compares all files with their checksums.
  void verify();

 private:
  struct Shard;

  const TensorEntry& entry(const std::string& key) const;
  Shard& shard(const std::string& file);

  std::filesystem::path folder_;
  Index index_;
  std::map<std::string, std::unique_ptr<Shard>> shards_;
};

}  // namespace trireme::checkpoint
