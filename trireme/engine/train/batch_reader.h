#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/order.h"
#include "trireme/data/range.h"
#include "trireme/data/read_parts.h"
#include "trireme/data/repeated_order.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/fed_source.h"
#include "trireme/kernels/spread.h"
#include "trireme/model.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// Makes batches out of the samples of a source: [n, ...shape], the batch at the dimension that the
/// model declares. Where dimensions of samples differ in length, all are padded to the first of
/// Source::padded_lengths that holds them. Immutable, thread-safe.
class BatchReader {
 public:
  /// spread   how the samples of a batch are read; what is read does not depend on it.
  /// parts    gets what the parts of reading take; null: nothing does.
  /// Errors   those of data::check_padding.
  BatchReader(std::shared_ptr<const data::Source> source, const Model& model,
              kernels::Spread spread = kernels::on_caller,
              std::shared_ptr<data::ReadParts> parts = nullptr);

  /// Errors   the source's for the first sample that cannot be read; kResourceExhausted without a thread.
  Batch read(const std::vector<data::Sample>& samples) const;

  /// Samples of these indices, as they come in an evaluation; the source is told before.
  Batch read(data::IndexRange range) const;

  /// Tells the source (data::Source::will_read).
  void will_read(const std::vector<data::Sample>& samples) const { source_->will_read(samples); }

  /// Of what `read` makes of them.
  graph::BatchSize size_of(const std::vector<data::Sample>& samples) const;
  graph::BatchSize size_of(data::IndexRange range) const;

  /// For recordings: `size` samples picked by the seed, repeats where the source has fewer; at the longest length.
  record::BatchMaker maker() const;

  /// The same at each padded length, shortest first, of samples that it holds; one where nothing differs.
  std::vector<record::PaddedBatches> makers() const;

  const std::vector<data::Lengths>& padded_lengths() const { return padded_; }

  /// Index in `padded_lengths()` of the first that holds the sample.
  int padded_index(data::Sample sample) const;

 private:
  Batch read(const std::vector<data::Sample>& samples, int padded) const;
  void read_padded(data::Sample sample, const data::Lengths& padded,
                   std::span<const std::span<std::byte>> places) const;
  int common_padding(const std::vector<data::Sample>& samples) const;
  std::vector<data::Sample> pick(std::int64_t size, std::uint64_t seed, int most_padded) const;

  std::shared_ptr<const data::Source> source_;
  std::vector<data::Lengths> padded_;
  std::map<std::string, int> batch_dims_;
  kernels::Spread spread_;
  std::shared_ptr<data::ReadParts> parts_;  // of all copies of the reader
};

/// The training data by step and microbatch: samples in the order f(seed, epoch, global index), repeated as the source asks
/// (data::repeat), with the step's scalars; where their lengths differ, a step's are dealt to its microbatches so that little is padded
/// (data::dealt_by_length). Any rank can ask for any microbatch. Thread-safe.
class StepReader {
 public:
  /// workload   outlives the reader.
  /// spread     as of BatchReader.
  StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed,
             data::OrderKind order = data::OrderKind::kShuffled,
             kernels::Spread spread = kernels::on_caller);

  /// Global microbatch `microbatch` of `step`: b samples; a pure function of these.
  Batch read(std::int64_t step, std::int64_t microbatch) const;

  /// The samples of a microbatch, which the source is told, and what `read` makes of them. Of a FedSource those that there are.
  std::vector<data::Sample> announce(std::int64_t step, std::int64_t microbatch) const;
  Batch read(std::int64_t step, const std::vector<data::Sample>& samples) const;

  /// Of what `read` makes; 0 samples where a step has fewer microbatches.
  graph::BatchSize size_of(std::int64_t step, std::int64_t microbatch) const;

  /// Whether steps are handed in one by one: nothing is known of one before.
  bool is_fed() const { return fed_ != nullptr; }

  /// What the parts of reading have taken since the last call.
  data::ReadParts::ByName take_parts() const { return parts_->take(); }

  /// For recordings.
  record::BatchMaker maker() const { return reader_.maker(); }
  std::vector<record::PaddedBatches> makers() const { return reader_.makers(); }

 private:
  using Deal = std::shared_ptr<const std::vector<std::int64_t>>;

  std::vector<data::Sample> samples_of(std::int64_t step, std::int64_t microbatch) const;
  Deal deal_of(std::int64_t step) const;

  const Workload& workload_;
  BatchLayout batch_;
  std::shared_ptr<data::ReadParts> parts_;  // the reader's too
  BatchReader reader_;
  data::RepeatedOrder order_;
  std::shared_ptr<const FedSource> fed_;  // the workload's too; null where all samples are there
  mutable std::mutex mutex_;              ///< Guards deals_.
  mutable std::map<std::int64_t, Deal> deals_;  ///< By step, the last few.
};

}  // namespace trireme::train
