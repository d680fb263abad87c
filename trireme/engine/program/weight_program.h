#pragma once

#include <memory>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// The part of a graph that computes the weights of its losses. They depend on no parameter, so it
/// runs for all microbatches of a step before the first backward, whose seeds need the totals.
class WeightProgram {
 public:
  /// Errors   kInvalidArgument where computing a weight writes a buffer: it would be written twice.
  explicit WeightProgram(const record::Recording& recording);

  /// Whether weights depend on the batch's data.
  bool reads_batch() const { return nodes_ != nullptr; }

  /// Weight of each loss for one microbatch: what its weight tensor holds, or the samples.
  std::vector<double> weights(const Batch& batch, std::int64_t num_samples) const;

 private:
  at::Tensor value(const Slots& slots, graph::ValueId value) const;

  const record::Recording& recording_;
  std::unique_ptr<NodeProgram> nodes_;  ///< Null where no loss has a weight.
};

/// Puts the fields of `batch` that the program takes into their slots.
void put_inputs(const graph::Graph& graph, const NodeProgram& nodes, const Batch& batch,
                Slots& slots);

}  // namespace trireme::program
