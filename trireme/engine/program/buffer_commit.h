#pragma once

#include <cstdint>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// Folds batch statistics of a step into the running ones, microbatch after microbatch, with
/// torch's own formula: bit for bit what the unmodified model's buffers would be.
///
/// statistics   by microbatch in global order, then in node order. Before `commit_counters`.
void commit_batch_norms(const record::Recording& recording,
                        const std::vector<std::vector<NormStatistics>>& statistics);

/// Makes the increments of counters, once per microbatch of `microbatch` samples.
void commit_counters(const record::Recording& recording, std::int64_t num_microbatches,
                     std::int64_t microbatch);

}  // namespace trireme::program
