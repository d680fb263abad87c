#include "trireme/engine/program/stage_program.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/error.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::program {
namespace {

bool contains(const std::vector<int>& items, int item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

}  // namespace

StageProgram::StageProgram(const record::Recording& recording, const layout::Plan& plan, int stage,
                           const SiteTable& sites)
    : recording_(recording),
      recomputes_(plan.stages[stage].recompute),
      offloads_(plan.stages[stage].offload) {
  const graph::Graph& graph = recording.graph;
  const std::vector<layout::Crossing> all = layout::crossings(graph, plan);
  for (const layout::Crossing& crossing : all) {
    if (!contains(crossing.stages, stage)) continue;
    const bool is_sent = crossing.stages.front() == stage;
    (is_sent ? sends_ : receives_).push_back(crossing);
    if (is_sent) ends_.push_back(crossing.value);
  }
  losses_ = layout::stage_losses(graph, plan, all)[stage];
  for (const int loss : losses_.made) ends_.push_back(graph.losses[loss].value);
  outputs_ = layout::stage_outputs(graph, plan)[stage];
  for (const int output : outputs_) {
    const graph::ValueId value = graph.outputs[output].value;
    if (graph.values[value].source == graph::ValueSource::kNode) ends_.push_back(value);
  }
  nodes_ = std::make_unique<NodeProgram>(recording, layout::stage_positions(graph, plan)[stage],
                                         ends_, sites.binding());
  for (const graph::Input& input : graph.inputs) {
    if (nodes_->slot_of(input.value)) fields_.push_back(input.name);
  }
}

at::Tensor output_of(const graph::Graph& graph, const graph::Output& output, const Batch& batch,
                     const std::function<at::Tensor(graph::ValueId)>& made) {
  const auto field = std::ranges::find(graph.inputs, output.value, &graph::Input::value);
  const at::Tensor value = field != graph.inputs.end() ? batch[field->name] : made(output.value);
  return value.detach().clone(at::MemoryFormat::Contiguous);
}

bool StageProgram::seeds_loss(int loss) const { return contains(losses_.seeded, loss); }

StageRun StageProgram::forward(const MicrobatchInput& input, ValueMap received) const {
  StageRun run{.slots = nodes_->make_slots(), .size = input.size, .leaves = {}};
  put_inputs(recording_.graph, *nodes_, input.batch, run.slots);
  const bool trains = recording_.graph.mode == graph::Mode::kTrain;
  for (const layout::Crossing& crossing : receives_) {
    const auto found = received.find(crossing.value);
    TRIREME_CHECK(found != received.end() && found->second.defined(),
                  "value " + std::to_string(crossing.value) + " was not received");
    at::Tensor tensor = std::move(found->second);
    if (crossing.has_gradient && trains) {
      auto node = make_node<CaptureNode>();
      tensor = make_stand_in(tensor, node);
      run.roots[crossing.value] = {node, 0};
      run.leaves[crossing.value] = std::move(node);
    }
    run.slots.tensors[*nodes_->slot_of(crossing.value)] = std::move(tensor);
  }
  if (trains && offloads_ && !recomputes_)
    run.saved = std::make_unique<SavedTensors>(model_storages());
  {
    const CollectSaved collect(run.saved.get());
    nodes_->run(run.slots, input.size, input.stream);
  }
  for (const graph::ValueId end : ends_) {
    const at::Tensor value = this->value(run, end);
    if (value.requires_grad()) run.roots[end] = torch::autograd::impl::gradient_edge(value);
  }
  return run;
}

/// Of what lies in memory whether a microbatch needs it or not.
std::set<const void*> StageProgram::model_storages() const {
  std::set<const void*> storages;
  for (const at::Tensor& tensor : recording_.tensors) {
    if (tensor.defined() && tensor.has_storage()) {
      storages.insert(tensor.storage().unsafeGetStorageImpl());
    }
  }
  return storages;
}

void StageProgram::offload(StageRun& run, const std::filesystem::path& folder) {
  run.slots.tensors.clear();
  if (run.saved) run.saved->offload(folder);
}

at::Tensor StageProgram::value(const StageRun& run, graph::ValueId value) const {
  const auto slot = nodes_->slot_of(value);
  TRIREME_CHECK(slot.has_value(), "value " + std::to_string(value) + " is not of this stage");
  return run.slots.tensors[*slot];
}

void StageProgram::fail(const StageRun& run, const FailedFunction& failed) const {
  const graph::Node* node = nodes_->node_of(run.slots, failed.sequence());
  try {
    std::rethrow_exception(failed.cause());
  } catch (const std::exception& cause) {
    const std::string function = "the backward (" + failed.name() + ") of";
    if (node != nullptr) {
      throw node_failure(function, graph::at_lengths(recording_.graph, run.size), *node,
                         run.size.samples, cause);
    }
    const Error error = error_of(cause);
    if (dynamic_cast<const Error*>(&cause) != nullptr) throw error;
    throw Error(error.kind(), "the backward (" + failed.name() + ") failed: " + error.message());
  }
}

StageProgram::Start StageProgram::start_of(const StageRun& run, const ValueMap& seeds) const {
  Start start;
  for (const auto& [value, gradient] : seeds) {
    if (!gradient.defined()) continue;
    const auto root = run.roots.find(value);
    if (root == run.roots.end()) continue;
    start.roots.push_back(root->second);
    start.gradients.push_back(gradient);
  }
  return start;
}

ValueMap StageProgram::backward(StageRun run, const ValueMap& seeds) const {
  const Start start = start_of(run, seeds);
  run.roots.clear();
  run.slots.tensors.clear();
  try {
    if (!start.roots.empty()) run_backward(start.roots, start.gradients);
  } catch (const FailedFunction& failed) {
    fail(run, failed);
  }
  ValueMap result;
  for (auto& [value, leaf] : run.leaves) {
    at::Tensor gradient = static_cast<CaptureNode*>(leaf.get())->take();
    if (gradient.defined()) result[value] = std::move(gradient);
  }
  return result;
}

ValueMap StageProgram::backward_inputs(StageRun& run, const ValueMap& seeds) const {
  const Start start = start_of(run, seeds);
  run.roots.clear();
  run.slots.tensors.clear();
  torch::autograd::edge_list edges;
  for (const auto& [value, leaf] : run.leaves) edges.emplace_back(leaf, 0);
  torch::autograd::variable_list gradients;
  try {
    gradients = run_input_backward(start.roots, start.gradients, edges, run.weight_work);
  } catch (const FailedFunction& failed) {
    fail(run, failed);
  }
  ValueMap result;
  auto gradient = gradients.begin();
  for (const auto& [value, leaf] : run.leaves) {
    if (gradient->defined()) result[value] = std::move(*gradient);
    ++gradient;
  }
  run.leaves.clear();
  return result;
}

void StageProgram::backward_weights(StageRun run) const {
  try {
    run_weight_backward(std::move(run.weight_work));
  } catch (const FailedFunction& failed) {
    fail(run, failed);
  }
}

}  // namespace trireme::program
