#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/column_cache.h"
#include "trireme/data/shard_files.h"
#include "trireme/data/table_file.h"

namespace trireme::data {

/// Records in Parquet and Arrow files: each row is a record, its columns are the fields, those in structs with the names of
/// these in front: `image.bytes`. A field's bytes are
///
///     text, bytes                      as they are
///     numbers, times                   little-endian, as wide as the column's type; a bool one byte
///     lists of numbers                 the numbers one after the other, also of lists of lists of a fixed length
///
/// Making one reads what each file says about itself. Reading a field decodes its column in the whole group of rows (a row
/// group, a record batch) and keeps it; of an Arrow file that is not compressed nothing is decoded or kept, as it is mapped.
///
/// Cost     24 bytes of memory a group, what Arrow keeps of a file's schema and groups, and up to `max_bytes` of columns.
/// Threads  safe.
class TableRecords : public RecordSource {
 public:
  /// max_bytes  of columns that are kept.
  /// library    lives as long as this.
  /// Errors     those of ShardFiles; kCorruptData, naming the shard, for one that is no such file or cut off, or that has
  ///            other columns than the first, which are named too; kInvalidArgument where two columns have one name.
  TableRecords(TableForm form, std::vector<std::filesystem::path> shards, std::int64_t max_bytes,
               const TableLibrary& library);

  std::int64_t num_records() const override { return num_records_; }
  std::vector<std::string> fields(std::int64_t index) const override;

  /// Errors   beside those of RecordSource: kInvalidArgument, naming the type, for a column that is not read (nested lists,
  ///          lists of text, decimals, maps); kCorruptData for a null.
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  struct Group {
    std::int64_t begin = 0;  ///< Its first record.
    int shard = 0, number = 0;
  };
  struct Place {
    Group group;
    std::int64_t row = 0;     ///< In the group.
    std::int64_t number = 0;  ///< In the shard.
  };

  void add_shard(int shard, const TableLibrary& library);
  void check_columns(int shard) const;
  Place place(std::int64_t index) const;
  int column(std::int64_t index, std::string_view field) const;
  ColumnCache::Values values(const Place& place, int column) const;

  TableForm form_;
  ShardFiles shards_;
  std::vector<std::unique_ptr<const TableFile>> files_;
  std::vector<std::int64_t> first_;  ///< Of each shard, the first record.
  std::vector<Group> groups_;
  std::int64_t num_records_ = 0;
  mutable ColumnCache cache_;
};

}  // namespace trireme::data
