#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/base/random.h"
#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// Tensors of one run. A slot is a place for one value.
struct Slots {
  std::vector<at::Tensor> tensors;
  std::vector<NormStatistics> statistics;  ///< In node order.
  std::vector<std::uint64_t> sequence;     ///< Torch's count of functions before each node
                                           ///< and after the last.
  int position = -1;                       ///< Of the node that runs, among the program's.
};

/// Some nodes of a recording, compiled: arguments laid out, last uses marked, parameters bound.
///
/// The order of operators, their gradient mode, autocast state and random streams are those of the
/// recording, so the results are too, bit for bit. Immutable but for a cache per size of microbatches;
/// thread-safe for runs with slots of their own.
class NodeProgram {
 public:
  /// positions   nodes to run, ascending.
  /// keep        values whose slots stay filled; others are freed at their last use.
  NodeProgram(const record::Recording& recording, std::vector<int> positions,
              std::span<const graph::ValueId> keep, ParameterBinding parameters);

  /// Empty slots for one run.
  Slots make_slots() const { return {std::vector<at::Tensor>(slot_of_.size()), {}, {}}; }

  /// The place of `value`; nothing where no node of the program takes or makes it.
  std::optional<int> slot_of(graph::ValueId value) const;

  /// Values to be put in their slots before a run: they come from outside.
  const std::vector<graph::ValueId>& external_values() const { return external_; }

  /// Runs all nodes. `size` is that of the microbatch in the slots; `stream` keys random nodes.
  ///
  /// Cost   30-45 ns an operator over direct calls.
  ///
  /// Errors   what an operator throws, as node_failure says it.
  void run(Slots& slots, const graph::BatchSize& size, const NodeStream& stream) const;

  int num_nodes() const { return static_cast<int>(positions_.size()); }

  /// Null for -1.
  const graph::Node* node_at(int position) const {
    return position < 0 ? nullptr : &recording_.graph.nodes[positions_[position]];
  }

  /// The node of a run whose forward made the function of a backward with this number; null where
  /// none did.
  const graph::Node* node_of(const Slots& slots, std::uint64_t sequence) const;

 private:
  const std::vector<NodeCall>& calls_for(const graph::BatchSize& size) const;
  void lay_out_slots(std::span<const graph::ValueId> keep);

  const record::Recording& recording_;
  std::vector<int> positions_;
  ParameterBinding parameters_;
  std::map<graph::ValueId, int> slot_of_;
  std::vector<graph::ValueId> external_;
  std::vector<std::vector<int>> releases_;                     ///< Slots freed after each node.
  std::vector<std::pair<int, at::Tensor>> private_constants_;  ///< Copied anew for each run.
  std::vector<int> written_inputs_;  ///< Slots of inputs that some node writes: copied first.
  mutable std::mutex mutex_;         ///< Guards calls_.
  /// By samples and Graph::shorter.
  mutable std::map<std::pair<std::int64_t, int>, std::unique_ptr<std::vector<NodeCall>>> calls_;
};

}  // namespace trireme::program
