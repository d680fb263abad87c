#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/shard_files.h"

namespace trireme::data {

/// Records in tar files (shards), by WebDataset's convention: members that follow each other and whose
/// names are the same up to the first dot of the last part are the fields of one record, each named by
/// what stands behind that dot, in small letters:
///
///     train/0001.jpg   train/0001.cls   train/0001.seg.png      record `train/0001`: jpg, cls, seg.png
///
/// Folders, links, names without a dot and hidden ones are left out. Records are those of the first
/// shard, then of the next one. Shards are not compressed: of those no part could be read alone.
///
/// Making one reads the headers of all shards, once; then a field is one read at its place.
///
/// Cost     24 bytes of memory a field and a name a record. Reading opens and closes the shard.
/// Threads  immutable.
class TarRecords : public RecordSource {
 public:
  /// Errors   kInvalidArgument without shards, or where one is not there; kIo; kCorruptData, naming shard
  ///          and member, where a shard is no tar, is cut off, has no records, or a record has two
  ///          fields of one name.
  explicit TarRecords(std::vector<std::filesystem::path> shards);

  std::int64_t num_records() const override { return static_cast<std::int64_t>(records_.size()); }
  std::vector<std::string> fields(std::int64_t index) const override;
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  struct Member {
    std::int64_t begin = 0;  ///< In the shard.
    std::int64_t bytes = 0;
    std::int32_t field = 0;  ///< In fields_.
  };
  struct Record {
    std::string name;
    std::size_t members = 0;  ///< The first; up to the next record's.
    std::int32_t shard = 0;
  };

  /// Reads the headers of a shard (tar_records.cc).
  class ShardReader;

  void add_shard(std::int32_t shard);
  void add_member(std::int32_t shard, const std::string& path, Member member);
  const Record& record(std::int64_t index) const;
  std::vector<Member> members(std::int64_t index) const;
  std::int32_t field_number(const std::string& name);

  ShardFiles shards_;
  std::vector<std::string> fields_;
  std::vector<Record> records_;
  std::vector<Member> members_;
};

}  // namespace trireme::data
