#include "trireme/engine/program/stage_program.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/program/stage_regions.h"
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
                           const SiteTable& sites, Capture capture)
    : recording_(recording), offloads_(plan.stages[stage].offload), sites_(sites) {
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
  if (graph.mode != graph::Mode::kTrain) return;
  if (plan.stages[stage].recompute) {
    regions_ = std::make_unique<StageRegions>(recording, plan, stage, sites, capture);
    return;
  }
  if (capture == Capture::kOff || offloads_) return;
  std::vector<graph::ValueId> leaves;
  for (const layout::Crossing& crossing : receives_) {
    if (crossing.has_gradient) leaves.push_back(crossing.value);
  }
  std::ranges::sort(leaves);
  captures_ = std::make_unique<StageCaptures>(recording, *nodes_, std::move(leaves));
}

StageProgram::~StageProgram() = default;
StageProgram::StageProgram(StageProgram&&) noexcept = default;

std::set<const void*> model_storages(const record::Recording& recording) {
  std::set<const void*> storages;
  for (const at::Tensor& tensor : recording.tensors) {
    if (tensor.defined() && tensor.has_storage()) {
      storages.insert(tensor.storage().unsafeGetStorageImpl());
    }
  }
  return storages;
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
  if (regions_) {
    for (auto& [value, tensor] : regions_->forward(run, input, std::move(received))) {
      run.slots.tensors[*nodes_->slot_of(value)] = std::move(tensor);
    }
    return run;
  }
  put_inputs(recording_.graph, *nodes_, input.batch, run.slots);
  put_received(run, std::move(received));
  if (!captures_ || !replay_forward(run, input)) run_usual_forward(run, input.stream);
  return run;
}

void StageProgram::run_usual_forward(StageRun& run, const NodeStream& stream) const {
  const bool trains = recording_.graph.mode == graph::Mode::kTrain;
  if (trains) make_leaves(run);
  if (trains && offloads_) run.saved = std::make_unique<SavedTensors>(model_storages(recording_));
  {
    const CollectSaved collect(run.saved.get());
    const auto run_nodes = [&] { nodes_->run(run.slots, run.size, stream); };
    if (run.turn) {
      run.turn->forward(run.slots, run_nodes, [&] { return values_of_ends(run); });
    } else {
      run_nodes();
    }
  }
  for (const graph::ValueId end : ends_) {
    const at::Tensor value = this->value(run, end);
    if (value.requires_grad()) run.roots[end] = torch::autograd::impl::gradient_edge(value);
  }
}

void StageProgram::put_received(StageRun& run, ValueMap received) const {
  for (const layout::Crossing& crossing : receives_) {
    const auto found = received.find(crossing.value);
    TRIREME_CHECK(found != received.end() && found->second.defined(),
                  "value " + std::to_string(crossing.value) + " was not received");
    run.slots.tensors[*nodes_->slot_of(crossing.value)] = std::move(found->second);
  }
}

/// Where the backward ends at what was received.
void StageProgram::make_leaves(StageRun& run) const {
  for (const layout::Crossing& crossing : receives_) {
    if (!crossing.has_gradient) continue;
    at::Tensor& tensor = run.slots.tensors[*nodes_->slot_of(crossing.value)];
    auto node = make_node<CaptureNode>();
    tensor = make_stand_in(tensor, node);
    run.roots[crossing.value] = {node, 0};
    run.leaves[crossing.value] = std::move(node);
  }
}

/// Whether the backward of a replayed run is a replay. Where it begins elsewhere than the captured one, the forward is run
/// again by torch, and later microbatches are too.
bool StageProgram::take_captured(StageRun& run, const ValueMap& seeds) const {
  if (!run.captured) return false;
  if (StageCaptures::holds_for(*run.captured, seeds)) {
    run.captured->input.reset();
    return true;
  }
  const std::unique_ptr<CapturedRun> captured = std::move(run.captured);
  captured->stage->refuse("its backward begins at other losses in some steps");
  if (!captured->input) {
    throw Error(ErrorKind::kInvalidArgument,
                "a gradient lies otherwise in memory than in the microbatches before, which were "
                "captured; switch capture off");
  }
  run.slots = nodes_->make_slots();
  auto tensor = captured->input->tensors.begin();
  for (const graph::ValueId value : nodes_->external_values()) {
    run.slots.tensors[*nodes_->slot_of(value)] = *tensor++;
  }
  run_usual_forward(run, captured->input->stream);
  return false;
}

/// Where the capture is trusted; else gives the run a turn where the capture wants one.
bool StageProgram::replay_forward(StageRun& run, const MicrobatchInput& input) const {
  CaptureInput given{.tensors = {}, .stream = input.stream};
  for (const graph::ValueId value : nodes_->external_values()) {
    given.tensors.push_back(run.slots.tensors[*nodes_->slot_of(value)]);
  }
  auto stage = captures_->find(input.size, given);
  if (!stage) return false;
  if (stage->state != CapturedStage::State::kTrusted) {
    run.turn = captures_->begin(std::move(stage), given);
    return false;
  }
  if (!stage->replayer->takes(capture::Phase::kForward, given.tensors)) return false;
  run.slots.tensors.assign(run.slots.tensors.size(), {});
  run.captured = std::make_unique<CapturedRun>();
  run.captured->stage = std::move(stage);
  if (recording_.graph.losses.size() > 1) run.captured->input = given;
  const std::vector<at::Tensor> values =
      captures_->forward(*run.captured, std::move(given), input.size);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    run.slots.tensors[*nodes_->slot_of(ends_[i])] = values[i];
  }
  return true;
}

std::vector<at::Tensor> StageProgram::values_of_ends(const StageRun& run) const {
  std::vector<at::Tensor> values;
  for (const graph::ValueId end : ends_) values.push_back(value(run, end));
  return values;
}

CaptureReport StageProgram::capture_report() const {
  if (regions_) return regions_->capture_report();
  return captures_ ? captures_->report() : CaptureReport();
}

void StageProgram::offload(StageRun& run, const std::filesystem::path& folder) {
  run.slots.tensors.clear();
  if (run.saved) run.saved->offload(folder);
  if (run.regions) StageRegions::offload(*run.regions, folder);
}

void StageProgram::prefetch(const StageRun& run) {
  if (run.saved) run.saved->prefetch();
  if (run.regions) run.regions->file->prefetch();
}

void StageProgram::fetch(StageRun& run) {
  if (run.saved) run.saved->fetch();
  if (run.regions) StageRegions::fetch(*run.regions);
}

at::Tensor StageProgram::value(const StageRun& run, graph::ValueId value) const {
  const auto slot = nodes_->slot_of(value);
  TRIREME_CHECK(slot.has_value(), "value " + std::to_string(value) + " is not of this stage");
  return run.slots.tensors[*slot];
}

void StageProgram::release(StageRun& run, graph::ValueId value) const {
  run.slots.tensors[*nodes_->slot_of(value)].reset();
}

void StageProgram::fail(const StageRun& run, const FailedFunction& failed) const {
  fail_at(nodes_->node_of(run.slots, failed.sequence()), failed.name(), run.size, failed.cause());
}

void StageProgram::fail_at(const graph::Node* node, const std::string& name,
                           const graph::BatchSize& size, const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& cause) {
    const std::string function = "the backward (" + name + ") of";
    if (node != nullptr) {
      throw node_failure(function, graph::at_lengths(recording_.graph, size), *node, size.samples,
                         cause);
    }
    const Error error = error_of(cause);
    if (dynamic_cast<const Error*>(&cause) != nullptr) throw error;
    throw Error(error.kind(), "the backward (" + name + ") failed: " + error.message());
  }
}

StageProgram::Start StageProgram::start_of(const StageRun& run, const ValueMap& seeds) const {
  Start start;
  for (const auto& [value, gradient] : seeds) {
    if (!gradient.defined()) continue;
    const auto root = run.roots.find(value);
    if (root == run.roots.end()) continue;
    start.values.push_back(value);
    start.roots.push_back(root->second);
    start.gradients.push_back(gradient);
  }
  return start;
}

ValueMap StageProgram::backward(StageRun run, const ValueMap& seeds) const {
  if (regions_) return regions_->backward(run, seeds);
  if (take_captured(run, seeds)) {
    const auto accept = sites_sink();
    ValueMap result = replay_backward(run, seeds, accept);
    replay_weights(run, accept);
    return result;
  }
  ValueMap result = in_turn(run, start_of(run, seeds),
                            [&](const Start& start) { return run_usual_backward(run, start); });
  if (run.turn) run.turn->finish();
  return result;
}

/// The usual work, listened to or compared where the run has a turn.
ValueMap StageProgram::in_turn(StageRun& run, const Start& start,
                               const std::function<ValueMap(const Start&)>& work) const {
  if (!run.turn) return work(start);
  CaptureTurn::Start known{.roots = {}, .seeds = start.values, .gradients = start.gradients};
  for (const auto& [value, edge] : run.roots) known.roots.push_back(value);
  return run.turn->backward(known, run.slots, [&] { return work(start); });
}

ValueMap StageProgram::run_usual_backward(StageRun& run, const Start& start) const {
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
  if (regions_) return regions_->backward_inputs(run, seeds);
  if (take_captured(run, seeds)) return replay_inputs(run, seeds);
  return in_turn(run, start_of(run, seeds),
                 [&](const Start& start) { return run_usual_inputs(run, start); });
}

ValueMap StageProgram::run_usual_inputs(StageRun& run, const Start& start) const {
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
  if (regions_) return regions_->backward_weights(*run.regions);
  for (const auto& [site, gradient] : run.weight_work.taken) sites_.accept(site, gradient);
  if (run.captured) return replay_weights(run, sites_sink());
  const auto work = [&] {
    try {
      run_weight_backward(std::move(run.weight_work));
    } catch (const FailedFunction& failed) {
      fail(run, failed);
    }
  };
  if (!run.turn) return work();
  run.turn->weights(run.slots, work);
  run.turn->finish();
}

capture::Replayer::Sites StageProgram::sites_sink() const {
  return [this](int site, const at::Tensor& gradient) { sites_.accept(site, gradient); };
}

ValueMap StageProgram::replay_backward(StageRun& run, const ValueMap& seeds,
                                       const capture::Replayer::Sites& sites) const {
  run.slots.tensors.clear();
  try {
    return captures_->backward(*run.captured, seeds, sites);
  } catch (const capture::FailedCall& failed) {
    fail_replay(run, failed);
  }
}

/// A capture of whole backwards keeps gradients of parameters for the second part; later microbatches are captured anew.
ValueMap StageProgram::replay_inputs(StageRun& run, const ValueMap& seeds) const {
  if (run.captured->stage->has_two_parts) return replay_backward(run, seeds, sites_sink());
  captures_->capture_in_two_parts(run.captured->stage);
  ValueMap result = replay_backward(run, seeds, [&](int site, const at::Tensor& gradient) {
    run.weight_work.taken.emplace_back(site, gradient.clone());
  });
  run.captured.reset();
  return result;
}

void StageProgram::replay_weights(StageRun& run, const capture::Replayer::Sites& sites) const {
  try {
    StageCaptures::weights(*run.captured, sites);
  } catch (const capture::FailedCall& failed) {
    fail_replay(run, failed);
  }
}

void StageProgram::fail_replay(const StageRun& run, const capture::FailedCall& failed) const {
  if (failed.origin < 0) fail_at(nullptr, "the engine", run.size, failed.cause);
  const CapturedStage::Function& function = run.captured->stage->functions[failed.origin];
  fail_at(function.node, function.name, run.size, failed.cause);
}

}  // namespace trireme::program
