#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/aligned_buffers.h"
#include "trireme/data/open_files.h"
#include "trireme/data/own_process.h"
#include "trireme/data/read_ahead.h"

namespace trireme::data {

/// What `open_fixed_records` makes: samples that are records of one size.
///
/// Past the system's cache a record is read with the aligned bytes around it, mostly 512: short records in shuffled order
/// cost as much as these. Immutable but for what is read ahead; thread-safe.
class FixedRecords : public Source {
 public:
  /// Errors   as of `open_fixed_records`.
  FixedRecords(const std::vector<std::filesystem::path>& paths, const FixedRecordOptions& options);
  /// In a child by fork what the parent's threads may have been changing is left in memory.
  ~FixedRecords() override;
  FixedRecords(const FixedRecords&) = delete;
  FixedRecords& operator=(const FixedRecords&) = delete;

  std::int64_t num_samples() const override { return first_.back(); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  void will_read(std::span<const Sample> samples) const override;
  std::string reading() const override;

  std::int64_t record_bytes() const { return record_bytes_; }

  /// A record in words, for messages.
  std::string name(std::int64_t index) const;

 private:
  /// A field with a name, in a record.
  struct Part {
    std::size_t begin = 0, bytes = 0;
  };

  void add_fields(const std::vector<Field>& fields);
  void count_records();
  void open(const FixedRecordOptions& options);
  RecordExtent extent_of(std::int64_t index) const;
  std::shared_ptr<const Descriptor> file_of(const RecordExtent& extent) const;
  static std::vector<RecordExtent> joined(std::vector<RecordExtent> extents);
  void advise(std::vector<RecordExtent> extents) const;
  bool is_cached(const RecordExtent& extent) const;
  void read_range(const RecordExtent& extent, std::span<std::byte> to, std::int64_t begin) const;
  void read_now(const RecordExtent& extent, std::span<const std::span<std::byte>> to) const;
  void split(std::span<const std::byte> record, std::span<const std::span<std::byte>> to) const;

  std::int64_t header_bytes_;
  std::int64_t record_bytes_ = 0;
  std::vector<Field> fields_;  ///< Those with names.
  std::vector<Part> parts_;    ///< Of each of these.
  ShardFiles shards_;
  std::vector<std::int64_t> first_ = {
      0};  ///< The first record of each file, and one behind the last.
  std::string reading_;
  OwnProcess process_;
  std::unique_ptr<const OpenFiles> files_;
  std::unique_ptr<AlignedBuffers>
      buffers_;  ///< For records that nobody has told before; null through the cache.
  std::unique_ptr<ReadAhead> ahead_;  ///< The same; last, it uses the others.
};

}  // namespace trireme::data
