#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/field_kinds.h"
#include "trireme/data/record_index.h"
#include "trireme/data/shard_files.h"

namespace trireme::data {

/// Records in TFRecord files, each a `tf.train.Example` whose features are the fields (tf_example.h). A file is a row of
///
///     length u64 | its checksum u32 | message | its checksum u32      little-endian; CRC32C, turned and shifted
///
/// Making one reads all lengths and checks them, and each shard's first record: a feature is of one kind in all of them. A
/// message's checksum is checked when it is read.
///
/// Cost     8 bytes of memory a record; compressed shards (`.gz`, `.zst`) are unpacked (shard_files.h). Reading a field
///          opens and closes the shard and reads the record.
/// Threads  immutable.
/// Source   tensorflow.org, "TFRecord and tf.train.Example".
class TfrecordRecords : public RecordSource {
 public:
  /// Errors   those of ShardFiles; kCorruptData, naming shard and record, where a length does not match its checksum, or
  ///          a shard is cut off. Of `read`: the same of the record that is read, and kCorruptData, naming shard, record and
  ///          feature, where it is of another kind than in the first record of a shard that had it.
  explicit TfrecordRecords(std::vector<std::filesystem::path> shards,
                           const UnpackOptions& packed = {});

  std::int64_t num_records() const override { return index_.num_records(); }
  std::vector<std::string> fields(std::int64_t index) const override;
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  void add_shard(int shard);
  void learn_kinds(std::int64_t index);

  /// Calls `use` with the features of a record.
  template <typename Use>
  auto with_example(std::int64_t index, Use use) const;

  ShardFiles shards_;
  RecordIndex index_;
  FieldKinds kinds_;
};

}  // namespace trireme::data
