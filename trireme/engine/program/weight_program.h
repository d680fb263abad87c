#pragma once

#include <memory>
#include <set>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// The part of a graph that computes weights of losses. They depend on no parameter, so it runs for
/// all microbatches of a step before the first backward, whose seeds need the totals.
class WeightProgram {
 public:
  /// losses   those with a weight that it is wanted of, by index in Graph::losses; without it, all.
  /// Errors   kInvalidArgument where computing the weight of any loss writes a buffer: it would be
  ///          written twice.
  WeightProgram(const record::Recording& recording, std::set<int> losses);
  explicit WeightProgram(const record::Recording& recording);

  /// Whether wanted weights depend on the batch's data.
  bool reads_batch() const { return reads_batch_; }

  /// Weight of each loss for one microbatch: what its weight tensor holds, or, of a mean, the
  /// samples. NaN where it is not wanted, so that nobody can use it.
  std::vector<double> weights(const Batch& batch, const graph::BatchSize& size) const;

 private:
  double value(const Slots& slots, graph::ValueId value) const;

  const record::Recording& recording_;
  std::set<int> losses_;
  std::unique_ptr<NodeProgram> nodes_;  ///< Null where no weight is wanted.
  bool reads_batch_ = false;
};

/// Puts the fields of `batch` that the program takes into their slots.
void put_inputs(const graph::Graph& graph, const NodeProgram& nodes, const Batch& batch,
                Slots& slots);

}  // namespace trireme::program
