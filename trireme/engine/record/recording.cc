#include "trireme/engine/record/recording.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>

#include <utility>

#include "trireme/base/error.h"
#include "trireme/engine/record/buffers.h"
#include "trireme/engine/record/compare.h"
#include "trireme/engine/record/generalise.h"
#include "trireme/engine/record/generator.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/plan/graph/check.h"
#include "trireme/plan/graph/copies.h"

namespace trireme::record {
namespace {

/// Puts the buffers of a model and the default generator, whose turn it is, back as they were.
class StateGuard {
 public:
  explicit StateGuard(const Model& model) : generator_(at::detail::getDefaultCPUGenerator()) {
    for (const NamedTensor& buffer : model.buffers) {
      if (buffer.tensor.defined()) saved_.emplace_back(buffer.tensor, buffer.tensor.clone());
    }
    generator_state_ = generator_.get_state();
  }
  ~StateGuard() {
    const c10::NoGradGuard no_grad;
    for (auto& [tensor, copy] : saved_) tensor.copy_(copy);
    generator_.set_state(generator_state_);
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  GeneratorTurn turn_;  // first: held until the state is back
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
  at::Generator generator_;
  at::Tensor generator_state_;
};

Trace trace_at(const Model& model, const BatchMaker& make_batch, graph::Mode mode,
               std::int64_t size, std::uint64_t seed, std::int64_t step) {
  const StateGuard restore(model);
  Batch batch = make_batch(size, seed);
  set_step_scalars(batch, model, step);
  return trace(model, batch, mode);
}

}  // namespace

Recording record(const Model& model, const BatchMaker& make_batch, graph::Mode mode) {
  // Steps far apart: a number taken from the step by other ways than a step scalar shows.
  constexpr std::array<std::int64_t, 3> kSteps = {0, 1, 10007};
  std::vector<Trace> traces;
  std::vector<FixedGraph> fixed;
  traces.reserve(kRecordedBatches.size());
  for (std::size_t i = 0; i < kRecordedBatches.size(); ++i) {
    traces.push_back(trace_at(model, make_batch, mode, kRecordedBatches[i], i, kSteps[i]));
    fixed.push_back({traces.back().graph, kRecordedBatches[i]});
  }
  Recording recording{.graph = generalise(fixed),
                      .tensors = std::move(traces[0].tensors),
                      .opaques = std::move(traces[0].opaques)};
  set_buffer_policies(recording.graph);
  for (const graph::Input& input : recording.graph.inputs) {
    recording.tensors[input.value] = at::Tensor();
  }
  graph::check(recording.graph);
  return recording;
}

Recording with_copies(Recording recording, std::span<const graph::NodeId> nodes) {
  if (nodes.empty()) return recording;
  recording.graph = graph::copy_to_consumers(recording.graph, nodes);
  recording.tensors.resize(recording.graph.values.size());  // new values are those of nodes
  return recording;
}

void check_drift(const graph::Graph& recorded, const Model& model, const BatchMaker& make_batch,
                 std::int64_t step) {
  constexpr std::int64_t kBatch = 4;
  const Trace now = trace_at(model, make_batch, recorded.mode, kBatch, 12345, step);
  const std::string what = difference(at_batch(recorded, kBatch), now.graph);
  if (what.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the model no longer does what was recorded, at step " + std::to_string(step) + ": " +
                  what +
                  ". State of the program has been baked into the recording; declare a number that "
                  "changes with the step as a step scalar, or make the code an opaque node");
}

}  // namespace trireme::record
