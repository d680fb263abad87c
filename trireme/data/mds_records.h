#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/shard_files.h"

namespace trireme::data {

/// Records of a folder in MosaicML's form MDS (version 2): `index.json` names the shards and their columns, which are the
/// fields. A shard holds, little-endian,
///
///     number of samples u32 | where each begins, and the last ends, u32 | what is not read here | samples
///     sample: sizes u32 of the columns whose size is not fixed | the columns' bytes
///
/// A field has the bytes of its encoding: str UTF-8; json its text; numbers (int is 64 bits) little-endian; jpeg, png and bytes
/// as they are.
///
/// Making one reads where the samples begin, which is not kept.
///
/// Cost     no memory for a record; shards of which only the compressed form is there (zstd, gz) are unpacked
///          (shard_files.h). Reading a field opens and closes the shard twice and reads the record.
/// Threads  immutable.
class MdsRecords : public RecordSource {
 public:
  /// Errors   kInvalidArgument for another version or form, or a compression that is not read; kCorruptData, naming file and
  ///          place, where the index is no such index, its shards differ in their columns, or a shard is not what it says;
  ///          those of ShardFiles.
  explicit MdsRecords(const std::filesystem::path& folder, const UnpackOptions& packed = {});

  std::int64_t num_records() const override { return first_.back(); }
  std::vector<std::string> fields(std::int64_t index) const override;

  /// Errors   kInvalidArgument too for an encoding that is Python's alone, as pkl.
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  struct Column {
    std::string name, encoding;
    std::int64_t bytes = 0;  ///< Of each value; below 0: they differ.
    bool operator==(const Column&) const = default;
  };
  struct Place {
    int shard = 0;
    std::int64_t number = 0;  ///< In the shard.
  };

  /// Where a column lies in a sample; begin below 0: the sample is damaged.
  struct Extent {
    std::int64_t begin = -1, bytes = 0;
  };

  /// What the index says (mds_records.cc).
  struct Index;

  MdsRecords(Index index, const UnpackOptions& packed);
  void check_shard(int shard, std::int64_t num_bytes) const;
  std::int64_t num_samples(int shard) const;
  Place place(std::int64_t index) const;
  std::vector<std::byte> read_sample(std::int64_t index) const;
  Extent extent_of(const Column& wanted, std::span<const std::byte> sample) const;

  std::vector<Column> columns_;
  ShardFiles shards_;
  std::vector<std::int64_t> first_ = {
      0};  ///< The first record of each shard, and one behind the last.
};

}  // namespace trireme::data
