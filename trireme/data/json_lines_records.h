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

/// Records in files of JSON lines (`.jsonl`, and compressed `.jsonl.gz`, `.jsonl.zst`): each line is an object, its keys are
/// the fields.
///
/// A text has the bytes of its value, in UTF-8, escapes resolved; any other value its JSON text, as `compact_text` writes it.
/// Fields of a record are sorted by name. Lines may differ in their fields, but a field is of one kind in all of them, or null:
/// a text, a number, true or false, a list or an object.
///
/// Making one looks for the lines of all shards; a line is parsed when it is read, but for the first and the last of each
/// shard, which shows one that is cut off.
///
/// Cost     8 bytes of memory a record; compressed shards are unpacked (shard_files.h). Reading a field opens and closes the
///          shard and parses the line.
/// Threads  immutable.
class JsonLinesRecords : public RecordSource {
 public:
  /// Errors   those of ShardFiles; kCorruptData, naming shard and line, for an empty line, one that has no object, or a
  ///          first or last one that is not valid JSON. Of `read`: the same for the line that is read, and kCorruptData,
  ///          naming shard, line and field, where the field is of another kind than in the first line that had it, of the
  ///          first and last ones of shards.
  explicit JsonLinesRecords(std::vector<std::filesystem::path> shards,
                            const UnpackOptions& packed = {});

  std::int64_t num_records() const override { return index_.num_records(); }
  std::vector<std::string> fields(std::int64_t index) const override;
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

 private:
  void add_shard(int shard);
  void learn_kinds(std::int64_t index);

  ShardFiles shards_;
  RecordIndex index_;
  FieldKinds kinds_;
};

}  // namespace trireme::data
