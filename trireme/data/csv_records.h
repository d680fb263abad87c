#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/csv_rows.h"
#include "trireme/data/record_index.h"
#include "trireme/data/shard_files.h"

namespace trireme::data {

/// Files of rows. Changes results.
struct CsvOptions {
  CsvFormat format;
  std::vector<std::string> columns;  ///< Their names; none: each file's first row has them.
  UnpackOptions packed;              ///< Of `.csv.gz` and `.csv.zst`.
};

/// Records in files of values separated by commas (RFC 4180), or by another character: each row is a record, its columns
/// are the fields. Values are UTF-8; a mark of the byte order at a file's beginning is left out.
///
/// Making one reads all rows of all shards and counts their columns.
///
/// Cost     8 bytes of memory a record; compressed shards are unpacked (shard_files.h). Reading a field opens and closes the
///          shard and parses the row.
/// Threads  immutable.
class CsvRecords : public RecordSource {
 public:
  /// Errors   those of ShardFiles; kInvalidArgument where columns that are given have no name or one twice; kCorruptData,
  ///          naming shard and line, for a row with another number of columns, or as CsvRows has it; for a shard without
  ///          rows, or whose columns are not named as those of the first.
  explicit CsvRecords(std::vector<std::filesystem::path> shards, CsvOptions options = {});

  std::int64_t num_records() const override { return index_.num_records(); }
  std::vector<std::string> fields(std::int64_t index) const override;
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  /// Looks for the rows of a shard (csv_records.cc).
  class ShardReader;

  void add_shard(int shard);

  /// The names in the first row of a shard are those of all.
  void take_header(int shard, const std::vector<std::string>& names);

  CsvFormat format_;
  bool has_header_;
  ShardFiles shards_;
  std::vector<std::string> columns_;
  RecordIndex index_;
};

}  // namespace trireme::data
