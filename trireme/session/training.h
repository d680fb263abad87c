#pragma once

#include <cstdint>
#include <memory>

#include "trireme/engine/record/recording.h"
#include "trireme/session.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// What is recorded. The references outlive it.
struct RecordRequest {
  const Model& model;
  std::shared_ptr<const data::Source> samples;
  graph::Mode mode = graph::Mode::kTrain;
  std::int64_t microbatch = 0;
  BatchSizes sizes = BatchSizes::kAnyElseExact;
};

/// Where the graph holds for the microbatch size alone though any was wished for, says so. Errors of record::record.
///
/// says   whether this process is the one that speaks.
record::Recording record_model(const RecordRequest& request, bool says);

/// The same on every rank of a world, each over its own model. The first rank records, and the others take its graph; where
/// that has opaque functions, or Model::recorded_by_all is set, each records by itself. Every rank calls it.
record::Recording record_model(const RecordRequest& request, const collectives::World& world);

/// Everything that a training is made of; the recordings share the workload's tensors.
struct Training {
  Workload workload;
  std::int64_t model_bytes;  ///< Of parameters and buffers, also where they take no memory yet.
  std::int64_t data_bytes;   ///< Live tensors beside the model's: the samples.
  record::Recording recorded;

  /// defers   initial values of large parameters.
  Training(const MakeWorkload& make, std::uint64_t seed, std::int64_t microbatch, BatchSizes sizes,
           bool defers, const collectives::World& world);
};

/// Whether rank 0 has room for all weights, as examples need it; says where it has not. Every rank calls it.
bool fits_first(const Training& training, const collectives::World& world);

}  // namespace trireme::session
