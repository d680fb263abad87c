#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme {

/// Adds the step scalars of `model`, as they are at `step`, to `batch`.
void set_step_scalars(Batch& batch, const Model& model, std::int64_t step);

}  // namespace trireme

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
  /// Why the graph holds for one batch size alone, where that was not asked for; for people.
  std::string why_exact;
  /// Why the model was told to do without control flow by data (`Model::set_traced`); for people.
  std::string why_traced;
};

/// Batch sizes of the recordings: two to fit, one to check, each with other data.
inline constexpr std::array<std::int64_t, 3> kRecordedBatches = {4, 6, 10};

struct RecordOptions {
  graph::Mode mode = graph::Mode::kTrain;
  std::int64_t microbatch = 0;  ///< Samples of each run; 0 where not known: then any or none.
  BatchSizes sizes = BatchSizes::kAnyElseExact;
};

/// Records `model.forward` at the three batch sizes and generalises it to any, or three times at
/// the microbatch size with other data and requires the same graph (Graph::microbatch says so).
///
/// Where forward's control flow depends on data, once more after `Model::set_traced`: it stays traced then, but after a
/// recording in eval mode.
///
/// The model is left as it was (buffers, generator, requires_grad), in training mode. Operators that
/// other threads call inside forward are not seen.
/// Errors   kInvalidArgument naming the operator and the nearest parameters where a replay could
///          not repeat the forward, and what to do; what forward throws, with the batch size and
///          the last operator.
/// Cost     three forward passes, and about 20 us an operator each; up to nine for kAnyElseExact.
Recording record(const Model& model, const BatchMaker& make_batch, const RecordOptions& options);

/// For any batch size.
Recording record(const Model& model, const BatchMaker& make_batch, graph::Mode mode);

/// Batches whose samples are padded to `lengths` (graph::Graph::lengths).
struct PaddedBatches {
  std::map<std::string, std::int64_t> lengths;
  BatchMaker make;
};

/// The same at several lengths of samples: the recording of the longest, its graph holding the others (Graph::shorter).
///
/// batches  shortest first, at least one.
/// Errors   kInvalidArgument too, naming the operator, where forward does other things at another length.
/// Cost     `record` for each.
Recording record(const Model& model, std::span<const PaddedBatches> batches,
                 const RecordOptions& options);

/// Whether another process can do with the graph of it: it has no opaque functions, which only a forward shows.
bool may_be_bound(const Recording& recording);

/// The recording that another process has made of the same model, over this one's tensors.
///
/// graph    of one that may_be_bound.
/// Errors   kInvalidArgument, naming it, where a parameter or buffer is missing, of another shape or dtype, or one of the
///          two alone wants a gradient.
Recording bind(graph::Graph graph, const Model& model);

/// Records once more, on a batch of four or of the graph's own size, and compares: throws
/// kInvalidArgument naming the first node that differs. `step` sets the step scalars.
void check_drift(const graph::Graph& recorded, const Model& model, const BatchMaker& make_batch,
                 std::int64_t step);

}  // namespace trireme::record
