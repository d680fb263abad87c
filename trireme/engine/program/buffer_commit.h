#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// Brings the buffers of batch norms up to date at the end of a step, compiled once.
///
/// Caller-synchronised.
class BufferCommits {
 public:
  /// recording    outlives this.
  /// microbatch   samples in each.
  BufferCommits(const record::Recording& recording, std::int64_t microbatch);

  /// Folds batch statistics of a step into the running ones, microbatch after microbatch, with
  /// torch's own formula: bit for bit what the unmodified model's buffers would be.
  ///
  /// statistics   by microbatch in global order, then in node order; none of those that the step does not have. Before `count`.
  void fold(const std::vector<std::vector<NormStatistics>>& statistics) const;

  /// Makes the increments of counters, once per microbatch.
  void count(std::int64_t num_microbatches) const;

 private:
  const record::Recording& recording_;
  std::map<graph::NodeId, const graph::Node*> norms_;
  std::vector<NodeCall> increments_;
};

}  // namespace trireme::program
