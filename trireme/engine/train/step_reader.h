#pragma once

#include <cstdint>

#include "trireme/data/order.h"
#include "trireme/engine/train/workload.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// The training data by step and microbatch: samples in the order f(seed, epoch, global index),
/// with the step's scalars. Any rank can ask for any microbatch. Immutable, thread-safe.
class StepReader {
 public:
  /// workload   outlives the reader.
  StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed);

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
