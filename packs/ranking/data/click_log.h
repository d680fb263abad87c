#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/fixed_records.h"

namespace trireme::ranking {

struct ClickLogOptions {
  // Changes results.
  std::int64_t num_dense = 13;
  std::int64_t num_categories = 26;
  std::int64_t max_rows = 0;  ///< Categories are taken modulo this; 0: as they are.

  // Changes speed only: data::FixedRecordOptions.
  data::FileAccess access = data::FileAccess::kBySize;
  int num_in_flight = 64;
  std::int64_t ahead_bytes = std::int64_t{64} << 20;
};

/// Logs of clicks in binary form, as DLRM's and HugeCTR's readers take Criteo's terabyte: records of int32, little-endian,
///
///     label | num_dense numbers | num_categories categories          160 bytes with the defaults
///
/// Fields   `label` f32 [], 0 or 1; `dense` f32 [num_dense], ln(1 + max(x, 0)); `categories` i64 [num_categories].
/// Errors   those of data::open_fixed_records. Of `read` too kCorruptData, naming file and record, for another label and for a
///          category below 0.
/// Threads  as data::FixedRecords.
/// Source   Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", arXiv:1906.00091;
///          the form of the files is that of `facebookresearch/dlrm`, data_loader_terabyte.py.
class ClickLog : public data::Source {
 public:
  ClickLog(const std::vector<std::filesystem::path>& paths, const ClickLogOptions& options);

  std::int64_t num_samples() const override { return records_.num_samples(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  void will_read(std::span<const data::Sample> samples) const override {
    records_.will_read(samples);
  }
  std::string reading() const override { return records_.reading(); }

 private:
  void check_destinations(std::span<const std::span<std::byte>> destinations) const;

  std::vector<data::Field> fields_;
  std::int64_t max_rows_;
  data::FixedRecords records_;
};

}  // namespace trireme::ranking
