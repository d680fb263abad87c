#include "trireme/engine/measure/node_measure.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {

namespace {

/// What is there before the first node. What some node writes is copied: the next walk needs it.
ForwardState first_state(const record::Recording& recording, const Batch& batch) {
  const graph::Graph& graph = recording.graph;
  std::set<int> written;
  for (const graph::Node& node : graph.nodes) {
    for (graph::ValueId id : node.writes) written.insert(graph.values[id].storage_id);
  }
  std::vector<at::Tensor> values(graph.values.size());
  const auto put = [&](graph::ValueId id, const at::Tensor& tensor) {
    values[id] = written.contains(graph.values[id].storage_id) ? tensor.clone() : tensor;
  };
  for (const graph::Input& input : graph.inputs) put(input.value, batch[input.name]);
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (graph.values[id].source != graph::ValueSource::kConstant) continue;
    put(static_cast<graph::ValueId>(id), recording.tensors[id]);
  }
  return {program::num_samples(graph, batch), std::move(values), weight_values(graph)};
}

/// Values that no later node takes, by the position of the last one that does or makes them.
std::map<int, std::vector<graph::ValueId>> last_uses(const graph::Graph& graph) {
  std::map<graph::ValueId, int> last;
  for (std::size_t p = 0; p < graph.nodes.size(); ++p) {
    for (graph::ValueId id : graph::input_values(graph.nodes[p])) last[id] = static_cast<int>(p);
    for (graph::ValueId id : graph.nodes[p].outputs) {
      if (id >= 0) last[id] = static_cast<int>(p);
    }
  }
  std::map<int, std::vector<graph::ValueId>> result;
  for (const auto& [id, position] : last) result[position].push_back(id);
  return result;
}

}  // namespace

void walk_forward(const record::Recording& recording, const Batch& batch,
                  const std::function<void(NodeTrial&)>& visit) {
  const graph::Graph& graph = recording.graph;
  ForwardState state = first_state(recording, batch);
  const auto unused = last_uses(graph);
  for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
    NodeTrial trial(recording, p, state);
    visit(trial);
    trial.advance();
    const auto found = unused.find(p);
    if (found == unused.end()) continue;
    for (graph::ValueId id : found->second) state.values[id].reset();
  }
}

namespace {

/// Holders of each storage.
std::vector<std::size_t> num_holders(const std::vector<c10::Storage>& storages) {
  std::vector<std::size_t> result;
  for (const c10::Storage& storage : storages) {
    result.push_back(storage ? storage.use_count() : 0);
  }
  return result;
}

/// Indices at which there are fewer holders now than `before`.
std::vector<int> let_go(const std::vector<c10::Storage>& storages,
                        const std::vector<std::size_t>& before) {
  const std::vector<std::size_t> now = num_holders(storages);
  std::vector<int> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] < before[i]) result.push_back(static_cast<int>(i));
  }
  return result;
}

/// What `kept` says in terms of storages: with inputs and outputs held here, only what the backward
/// keeps beside them is freed as its graph is.
void measure_forward(NodeTrial& trial, profile::NodeCost& cost) {
  trial.prepare();
  const std::vector<c10::Storage> inputs = trial.input_storages();
  memory::reset_peak();
  trial.forward();
  const memory::MemoryUse use = memory::memory_use();
  cost.forward_workspace_bytes = use.peak_bytes - use.live_bytes;
  const std::vector<c10::Storage> outputs = trial.output_storages();
  trial.keep_graph();
  const auto input_holders = num_holders(inputs), output_holders = num_holders(outputs);
  const std::int64_t live_bytes = memory::memory_use().live_bytes;
  trial.release_graph();
  cost.kept_bytes = live_bytes - memory::memory_use().live_bytes;
  cost.saved_inputs = let_go(inputs, input_holders);
  cost.saved_outputs = let_go(outputs, output_holders);
}

void measure_backward(NodeTrial& trial, profile::NodeCost& cost) {
  trial.prepare();
  trial.forward();
  trial.keep_graph();
  memory::reset_peak();
  const std::int64_t live_bytes = memory::memory_use().live_bytes;
  trial.backward(NodeTrial::Part::kAll);
  const std::int64_t peak_bytes = memory::memory_use().peak_bytes - live_bytes;
  cost.backward_workspace_bytes = std::max<std::int64_t>(0, peak_bytes - trial.gradient_bytes());
}

}  // namespace

void measure_memory(NodeTrial& trial, profile::NodeCost& cost) {
  measure_forward(trial, cost);
  if (trial.has(NodeTrial::Part::kAll)) measure_backward(trial, cost);
}

namespace {

using Part = NodeTrial::Part;

/// Times one node after the other.
class NodeTimer {
 public:
  explicit NodeTimer(const RepeatOptions& options)
      : options_(options), engine_us_(engine_call_us()) {}

  void time(NodeTrial& trial, profile::NodeCost& cost) const {
    const Timing forward =
        time_repeats(options_, [&] { trial.prepare(); }, [&] { trial.forward(); });
    cost.forward_us = forward.median_us;
    cost.spread = forward.spread;
    if (trial.has(Part::kAll)) time_backward(trial, cost);
  }

 private:
  void time_backward(NodeTrial& trial, profile::NodeCost& cost) const {
    const double whole = backward_us(trial, Part::kAll);
    double input_part = trial.has(Part::kInputs) ? 1 : 0;
    if (trial.has(Part::kInputs) && trial.has(Part::kWeights)) {
      const double inputs = backward_us(trial, Part::kInputs);
      const double weights = backward_us(trial, Part::kWeights);
      input_part = inputs + weights > 0 ? inputs / (inputs + weights) : 0.5;
    }
    cost.input_us = whole * input_part;
    cost.weight_us = whole - cost.input_us;
  }

  double backward_us(NodeTrial& trial, Part part) const {
    const auto prepare = [&] {
      trial.prepare();
      trial.forward();
      trial.keep_graph();
    };
    const Timing timing = time_repeats(options_, prepare, [&] { trial.backward(part); });
    return std::max(0.0, timing.median_us - engine_us_);
  }

  /// A backward through nothing. The least, not to subtract what only disturbed this measurement.
  double engine_call_us() const {
    const program::NodePtr node = program::make_node<program::CaptureNode>();
    const at::Tensor tensor = at::ones({});
    const at::Tensor stand_in = program::make_stand_in(tensor, node);
    const torch::autograd::edge_list edge = {torch::autograd::impl::gradient_edge(stand_in)};
    return time_repeats(
               options_, [] {},
               [&] {
                 torch::autograd::Engine::get_default_engine().execute(
                     edge, {tensor}, /*keep_graph=*/false, /*create_graph=*/false,
                     /*accumulate_grad=*/false, edge);
               })
        .least_us;
  }

  const RepeatOptions options_;
  const double engine_us_;
};

void require_ready(const record::Recording& recording) {
  if (recording.graph.mode != graph::Mode::kTrain) {
    throw Error(ErrorKind::kInvalidArgument,
                "a profile is of a recording in train mode, got one in eval mode");
  }
  if (!memory::is_block_allocator_installed()) {
    throw Error(ErrorKind::kInvalidArgument,
                "bytes are not counted: call memory::apply_torch_settings before recording");
  }
}

void take_medians(std::vector<profile::NodeCost>& costs, const BusyRanks& ranks) {
  std::vector<double> numbers;
  for (const profile::NodeCost& cost : costs) {
    numbers.insert(numbers.end(), {cost.forward_us, cost.input_us, cost.weight_us, cost.spread});
  }
  numbers = ranks.medians(numbers);
  for (std::size_t c = 0; c < costs.size(); ++c) {
    costs[c].forward_us = numbers[4 * c];
    costs[c].input_us = numbers[4 * c + 1];
    costs[c].weight_us = numbers[4 * c + 2];
    costs[c].spread = numbers[4 * c + 3];
  }
}

}  // namespace

NodeCosts measure_nodes(const Subject& subject, const RepeatOptions& options) {
  require_ready(subject.recording);
  const WriteGuard writes(subject.recording);
  const NodeTimer timer(options);
  NodeCosts result;
  std::map<std::string, int> known;
  walk_forward(subject.recording, subject.batch, [&](NodeTrial& trial) {
    profile::NodeCost cost;
    cost.key = trial.key();
    const auto [found, is_new] = known.emplace(cost.key, static_cast<int>(result.costs.size()));
    result.cost_of.push_back(found->second);
    if (!is_new) return;
    subject.ranks.barrier();
    if (subject.ranks.is_first()) measure_memory(trial, cost);
    subject.ranks.barrier();
    timer.time(trial, cost);
    result.costs.push_back(std::move(cost));
  });
  take_medians(result.costs, subject.ranks);
  return result;
}

}  // namespace trireme::measure
