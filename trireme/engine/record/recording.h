#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/engine/record/model.h"
#include "trireme/engine/record/opaque.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Makes a batch of `size` samples for a recording; other seeds give other data. Step scalars are
/// added by the recorder.
using BatchMaker = std::function<Batch(std::int64_t size, std::uint64_t seed)>;

/// A recorded forward pass: the graph and the live tensors and functions that it names.
struct Recording {
  graph::Graph graph;
  /// By value id: parameters and buffers (the model's own tensors), constants; undefined elsewhere.
  std::vector<at::Tensor> tensors;
  std::map<std::string, std::shared_ptr<const OpaqueFunction>> opaques;
};

/// Batch sizes of the recordings: two to fit, one to check, each with other data.
inline constexpr std::array<std::int64_t, 3> kRecordedBatches = {4, 6, 10};

/// Records `model.forward` at the three batch sizes and generalises it to any.
///
/// The model is left as it was (buffers, generator), in the training mode of `mode`. Operators that
/// other threads call inside forward are not seen.
/// Errors   kInvalidArgument naming the operator and the nearest parameters where a replay could
///          not repeat the forward, and what to do; whatever forward throws.
/// Cost     three forward passes, and about 20 us an operator each.
Recording record(const Model& model, const BatchMaker& make_batch, graph::Mode mode);

/// The recording with `nodes` run once per consuming node. Errors of graph::copy_to_consumers.
Recording with_copies(Recording recording, std::span<const graph::NodeId> nodes);

/// Records once more, on a batch of four, and compares: throws kInvalidArgument naming the first
/// node that differs (DESIGN contract 6: no baked host state). `step` sets the step scalars.
void check_drift(const graph::Graph& recorded, const Model& model, const BatchMaker& make_batch,
                 std::int64_t step);

}  // namespace trireme::record
