#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/order.h"
#include "trireme/data/range.h"
#include "trireme/engine/record/recording.h"
#include "trireme/model.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// Makes batches out of the samples of a source: [n, ...shape], the batch at the dimension that the
/// model declares. Immutable, thread-safe.
class BatchReader {
 public:
  BatchReader(std::shared_ptr<const data::Source> source, const Model& model);

  Batch read(const std::vector<data::Sample>& samples) const;

  /// Samples of these indices, as they come in an evaluation.
  Batch read(data::IndexRange range) const;

  /// For recordings: `size` samples picked by the seed, repeats where the source has fewer.
  record::BatchMaker maker() const;

 private:
  std::shared_ptr<const data::Source> source_;
  std::map<std::string, int> batch_dims_;
};

/// The training data by step and microbatch: samples in the order f(seed, epoch, global index),
/// with the step's scalars. Any rank can ask for any microbatch. Immutable, thread-safe.
class StepReader {
 public:
  /// workload   outlives the reader.
  StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed,
             data::OrderKind order = data::OrderKind::kShuffled);

  /// Global microbatch `microbatch` of `step`: b samples; a pure function of these.
  Batch read(std::int64_t step, std::int64_t microbatch) const;

  /// For recordings.
  record::BatchMaker maker() const { return reader_.maker(); }

 private:
  const Workload& workload_;
  BatchLayout batch_;
  BatchReader reader_;
  data::SampleOrder order_;
};

}  // namespace trireme::train
