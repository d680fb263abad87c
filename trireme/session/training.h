#pragma once

#include <cstdint>

#include "trireme/engine/record/recording.h"
#include "trireme/session.h"

namespace trireme::session {

/// Records the workload's model for microbatches of `microbatch` samples. Where the graph holds for
/// that size alone though any was wished for, says so. Errors of record::record.
///
/// says   whether this process is the one that speaks.
record::Recording record_model(const Workload& workload, graph::Mode mode, std::int64_t microbatch,
                               BatchSizes sizes, bool says);
record::Recording record_model(const Model& model, std::shared_ptr<const data::Source> samples,
                               graph::Mode mode, std::int64_t microbatch, BatchSizes sizes,
                               bool says);

/// Everything that a training is made of; the recordings share the workload's tensors.
struct Training {
  Workload workload;
  std::int64_t model_bytes;  ///< Of parameters and buffers, also where they take no memory yet.
  std::int64_t data_bytes;   ///< Live tensors beside the model's: the samples.
  record::Recording recorded;

  /// defers   initial values of large parameters.
  Training(const MakeWorkload& make, std::uint64_t seed, std::int64_t microbatch, BatchSizes sizes,
           bool defers, bool says);
};

}  // namespace trireme::session
