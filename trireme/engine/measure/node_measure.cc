#include "trireme/engine/measure/node_measure.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <utility>

#include "trireme/engine/measure/forward_walk.h"
#include "trireme/engine/measure/node_memory.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/program/autograd_nodes.h"
#include "trireme/error.h"

namespace trireme::measure {
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
