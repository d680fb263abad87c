#include "trireme/engine/record/recording.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "trireme/engine/record/buffer_policies.h"
#include "trireme/engine/record/generalise.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/holes.h"
#include "trireme/engine/record/packed_sequences.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::record {
namespace {

struct TraceInput {
  std::int64_t size;
  std::uint64_t seed;
  std::int64_t step;
};

Trace trace_at(const Model& model, const BatchMaker& make_batch, graph::Mode mode,
               const TraceInput& input) {
  const StateGuard restore(model);
  Batch batch = make_batch(input.size, input.seed);
  set_step_scalars(batch, model, input.step);
  return trace(model, batch, mode);
}

/// A leaf that is the same tensor in two recordings was not made by the call that used it.
void refuse_captured_leaves(const Trace& first, const Trace& other) {
  for (const OpaqueLeaf& leaf : first.opaque_leaves) {
    for (const OpaqueLeaf& again : other.opaque_leaves) {
      if (!leaf.tensor.is_same(again.tensor)) continue;
      throw Error(ErrorKind::kInvalidArgument,
                  "cannot record the opaque function '" + leaf.function + "': " + kCapturedLeaf);
    }
  }
}

Recording finish(graph::Graph graph, Trace& trace) {
  Recording recording{.graph = std::move(graph),
                      .tensors = std::move(trace.tensors),
                      .opaques = std::move(trace.opaques),
                      .why_exact = "",
                      .why_traced = ""};
  set_buffer_policies(recording.graph);
  for (const graph::Input& input : recording.graph.inputs) {
    recording.tensors[input.value] = at::Tensor();
  }
  graph::check(recording.graph);
  return recording;
}

/// Steps far apart: a number taken from the step by other ways than a step scalar shows.
constexpr std::array<std::int64_t, 3> kSteps = {0, 1, 10007};

/// What traces of one model are made into.
struct Tracer {
  const Model& model;
  const BatchMaker& make_batch;
  graph::Mode mode;
  std::vector<at::Tensor> read_counters = {};  ///< By the program, in the first trace.

  /// Trace `number`: other numbers have other data, another step and other counters.
  Trace trace(std::int64_t size, std::size_t number) {
    const StateGuard restore(model);
    const std::int64_t step = kSteps[number % kSteps.size()];
    for (const at::Tensor& counter : read_counters) counter.detach().add_(step);
    Trace result = trace_at(model, make_batch, mode, {size, number, step});
    if (read_counters.empty()) read_counters = result.read_counters;
    return result;
  }

  Trace trace_of_any_size(std::int64_t size, std::size_t number) {
    try {
      return trace(size, number);
    } catch (const SizeProblem& problem) {
      if (problem.kind() != ErrorKind::kModelFailure) throw;
      throw SizeProblem(problem.kind(),
                        problem.message() +
                            ". A recording takes 4, 6 and 10 samples; where the model is written "
                            "for one batch size (a fixed size in view, a state carried from batch "
                            "to batch), record it at its microbatch size (--record-at exact)");
    }
  }

  Recording at_any_size() {
    std::vector<Trace> traces;
    std::vector<FixedGraph> fixed;
    traces.reserve(kRecordedBatches.size());
    for (std::size_t i = 0; i < kRecordedBatches.size(); ++i) {
      traces.push_back(trace_of_any_size(kRecordedBatches[i], i));
      fixed.push_back({traces.back().graph, kRecordedBatches[i]});
      if (i > 0) refuse_captured_leaves(traces[0], traces[i]);
    }
    settle_packed(traces, 1);
    return finish(generalise(fixed), traces[0]);
  }

  Recording at_size(std::int64_t size) {
    if (size < 1) {
      throw Error(ErrorKind::kInvalidArgument,
                  "a recording at the microbatch size alone needs that size; give --microbatch");
    }
    std::vector<Trace> traces;
    for (std::size_t i = 0; i < kSteps.size(); ++i) traces.push_back(trace(size, i));
    settle_packed(traces, size);
    Trace& first = traces[0];
    for (std::size_t i = 1; i < traces.size(); ++i) {
      refuse_captured_leaves(first, traces[i]);
      const std::string what = difference(first.graph, traces[i].graph);
      if (what.empty()) continue;
      throw Error(ErrorKind::kInvalidArgument,
                  "two recordings at the batch size " + std::to_string(size) + " differ: " + what +
                      ". It depends on data or on the state of the program: mark the code around "
                      "it with trireme::opaque, or declare a number that changes with the step as "
                      "a step scalar");
    }
    graph::Graph graph = std::move(first.graph);
    graph.microbatch = size;
    return finish(std::move(graph), first);
  }

  /// `at_size`, or nothing where the recordings differ by more than their sizes.
  std::optional<Recording> at_size_if_alone(std::int64_t size) {
    try {
      Recording exact = at_size(size);
      for (const std::int64_t other : kRecordedBatches) {
        if (!is_repeatable(other)) return std::nullopt;
      }
      return exact;
    } catch (const Error&) {
      return std::nullopt;  // the first problem says more
    }
  }

  /// Two recordings at `size` with other data agree, or the model cannot take that many samples.
  bool is_repeatable(std::int64_t size) {
    std::vector<Trace> traces;
    try {
      for (const std::size_t number : {3, 4}) traces.push_back(trace(size, number));
    } catch (const SizeProblem&) {
      return true;
    }
    settle_packed(traces, size);  // throws where they do not agree
    return difference(traces[0].graph, traces[1].graph).empty();
  }

  /// What the traces have of packed sequences. Where it is unsure whether lengths are given, other
  /// batches of `size` samples may tell.
  void settle_packed(std::vector<Trace>& traces, std::int64_t size) {
    std::vector<graph::Graph*> graphs;
    for (Trace& trace : traces) graphs.push_back(&trace.graph);
    agree_on_padded_lengths(graphs);
    constexpr std::size_t kFirst = 5, kLast = 16;
    for (std::size_t number = kFirst; number <= kLast && has_unsure_lengths(*graphs[0]); ++number) {
      std::optional<Trace> more = trace_if_possible(size, number);
      if (!more) break;
      graphs.push_back(&more->graph);
      agree_on_padded_lengths(graphs);
      graphs.pop_back();
    }
    mark_ragged(graphs);
  }

  std::optional<Trace> trace_if_possible(std::int64_t size, std::size_t number) {
    try {
      return trace(size, number);
    } catch (const SizeProblem&) {
      return std::nullopt;
    }
  }
};

bool fits(const at::Tensor& tensor, const graph::Value& value) {
  if (!tensor.defined() || to_dtype(tensor.scalar_type()) != value.dtype ||
      tensor.requires_grad() != value.requires_grad || tensor.dim() != std::ssize(value.shape)) {
    return false;
  }
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) != value.shape[d].fixed) return false;
  }
  return true;
}

/// The forward as it is.
Recording record_once(const Model& model, const BatchMaker& make_batch,
                      const RecordOptions& options) {
  Tracer tracer{model, make_batch, options.mode};
  if (options.sizes == BatchSizes::kExact) return tracer.at_size(options.microbatch);
  try {
    return tracer.at_any_size();
  } catch (const SizeProblem& problem) {
    if (options.sizes == BatchSizes::kAny || options.microbatch < 1) throw;
    std::optional<Recording> exact = tracer.at_size_if_alone(options.microbatch);
    if (!exact) throw;
    exact->why_exact = problem.message();
    return *std::move(exact);
  }
}

}  // namespace

Recording record(const Model& model, const BatchMaker& make_batch, const RecordOptions& options) {
  try {
    return record_once(model, make_batch, options);
  } catch (const DataProblem& problem) {
    if (!model.set_traced) throw;
    const bool before = model.set_traced(true);
    try {
      Recording recording = record_once(model, make_batch, options);
      recording.why_traced = problem.problem();
      if (options.mode == graph::Mode::kEval) model.set_traced(before);
      return recording;
    } catch (...) {
      model.set_traced(before);
    }
    throw;  // the first problem says more
  }
}

Recording record(const Model& model, const BatchMaker& make_batch, graph::Mode mode) {
  return record(model, make_batch, {.mode = mode, .sizes = BatchSizes::kAny});
}

namespace {

/// At each length, the longest first.
std::vector<Recording> record_each(const Model& model, std::span<const PaddedBatches> batches,
                                   const RecordOptions& options) {
  std::vector<Recording> recordings;
  for (auto one = batches.rbegin(); one != batches.rend(); ++one) {
    recordings.push_back(record(model, one->make, options));
    recordings.back().graph.lengths = one->lengths;
  }
  return recordings;
}

void require_same_structure(const graph::Graph& longest, const graph::Graph& other) {
  const std::string what = graph::structure_difference(longest, other);
  if (what.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the model does other things at " + graph::lengths_text(other) + " than at " +
                  graph::lengths_text(longest) + ": " + what +
                  ". Write it without a branch on the length, without tensors whose number or data "
                  "follow from it, or pad all samples to one length");
}

}  // namespace

Recording record(const Model& model, std::span<const PaddedBatches> batches,
                 const RecordOptions& options) {
  std::vector<Recording> recordings = record_each(model, batches, options);
  const auto is_exact = [](const Recording& one) { return one.graph.microbatch > 0; };
  if (std::ranges::any_of(recordings, is_exact) && !std::ranges::all_of(recordings, is_exact)) {
    std::string why = std::ranges::find_if(recordings, is_exact)->why_exact;
    RecordOptions exact = options;
    exact.sizes = BatchSizes::kExact;
    recordings = record_each(model, batches, exact);
    recordings[0].why_exact = std::move(why);
  }
  Recording longest = std::move(recordings[0]);
  for (std::size_t i = recordings.size(); i-- > 1;) {
    require_same_structure(longest.graph, recordings[i].graph);
    longest.graph.shorter.push_back(std::move(recordings[i].graph));
  }
  graph::check(longest.graph);
  return longest;
}

bool may_be_bound(const Recording& recording) {
  const auto& values = recording.graph.values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].source != graph::ValueSource::kConstant) continue;
    const at::Tensor& constant = recording.tensors[i];  // `bind` makes a dense one
    if (!constant.is_contiguous() || constant.is_conj() || constant.is_neg()) return false;
  }
  return recording.opaques.empty();
}

Recording bind(graph::Graph graph, const Model& model) {
  std::map<std::string, at::Tensor> registered;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) registered[name] = tensor;
  }
  Recording recording;
  recording.tensors.resize(graph.values.size());
  const auto take = [&](const std::string& name, graph::ValueId id) {
    const at::Tensor& tensor = registered[name];
    if (!fits(tensor, graph.values[id])) {
      throw Error(ErrorKind::kInvalidArgument,
                  "the first rank's model has '" + name + "', which is " +
                      (tensor.defined() ? "of another shape or dtype, or otherwise frozen, here"
                                        : "missing here") +
                      "; make the same model on all ranks");
    }
    recording.tensors[id] = tensor;
  };
  for (const graph::Parameter& parameter : graph.parameters) take(parameter.name, parameter.value);
  for (const graph::Buffer& buffer : graph.buffers) take(buffer.name, buffer.value);
  for (const graph::ConstantTensor& constant : graph.constants) {
    const graph::Value& value = graph.values[constant.value];
    std::vector<std::int64_t> shape;
    for (const graph::Size& size : value.shape) shape.push_back(size.fixed);
    recording.tensors[constant.value] = to_tensor(constant.bytes, value.dtype, shape);
  }
  recording.graph = std::move(graph);
  return recording;
}

void check_drift(const graph::Graph& recorded, const Model& model, const BatchMaker& make_batch,
                 std::int64_t step) {
  const std::int64_t batch = recorded.microbatch > 0 ? recorded.microbatch : 4;
  Trace now = trace_at(model, make_batch, recorded.mode, {batch, 12345, step});
  graph::Graph before = at_batch(recorded, batch);
  const std::array<graph::Graph*, 2> both = {&before, &now.graph};
  agree_on_padded_lengths(both);
  mark_ragged(both);
  const std::string what = difference(before, now.graph);
  if (what.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the model no longer does what was recorded, at step " + std::to_string(step) + ": " +
                  what +
                  ". State of the program has been baked into the recording; declare a number that "
                  "changes with the step as a step scalar, or make the code an opaque node");
}

}  // namespace trireme::record
