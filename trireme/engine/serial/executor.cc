#include "trireme/engine/serial/executor.h"

#include <ATen/Functions.h>

#include <numeric>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/engine/program/boundary.h"
#include "trireme/engine/program/buffer_commit.h"
#include "trireme/plan/layout/check.h"

namespace trireme::serial {
namespace {

StepLosses empty_losses(const graph::Graph& graph) {
  StepLosses losses;
  for (const graph::Loss& loss : graph.losses) {
    losses.losses.push_back({.name = loss.name, .coefficient = loss.coefficient});
  }
  return losses;
}

/// What a microbatch adds to the total sum: a mean counts once per sample.
double sum_of(const graph::Loss& loss, const at::Tensor& value, double weight) {
  const double number = value.item<double>();
  return loss.weight ? number : number * weight;
}

}  // namespace

double StepLosses::total() const {
  return std::accumulate(losses.begin(), losses.end(), 0.0, [](double sum, const LossTotal& loss) {
    return loss.coefficient == 0 ? sum : sum + loss.coefficient * loss.mean();
  });
}

std::int64_t num_samples(const graph::Graph& graph, const Batch& batch) {
  std::int64_t samples = -1;
  std::string first;
  for (const graph::Input& input : graph.inputs) {
    const at::Tensor& tensor = batch[input.name];
    if (input.batch_dim < 0) continue;
    if (input.batch_dim >= tensor.dim()) {
      throw Error(ErrorKind::kInvalidArgument, "field '" + input.name + "' has no dimension " +
                                                   std::to_string(input.batch_dim) +
                                                   " for the batch");
    }
    const std::int64_t here = tensor.size(input.batch_dim);
    if (samples >= 0 && here != samples) {
      throw Error(ErrorKind::kInvalidArgument, "field '" + input.name + "' has " +
                                                   std::to_string(here) + " samples, field '" +
                                                   first + "' has " + std::to_string(samples));
    }
    samples = here;
    first = input.name;
  }
  if (samples >= 0) return samples;
  throw Error(ErrorKind::kInvalidArgument, "the recording has no input that grows with the batch");
}

/// Weight of each loss: by microbatch, and its total over the step.
struct SerialExecutor::Seeds {
  std::vector<std::vector<double>> weights;
  std::vector<double> totals;
};

SerialExecutor::SerialExecutor(const record::Recording& recording, const layout::Plan& plan,
                               const parameters::ParameterStore& store, std::uint64_t seed)
    : recording_(recording),
      plan_((layout::check(plan, store.map().graph_sha256, recording.graph), plan)),
      seed_(seed),
      accumulator_(store, recording.graph, static_cast<int>(plan.batch.lanes)),
      sites_(recording, accumulator_),
      weights_(recording) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    stages_.emplace_back(recording, plan_, static_cast<int>(s), sites_);
  }
}

SerialExecutor::Seeds SerialExecutor::weigh(const std::vector<Batch>& microbatches) const {
  Seeds seeds;
  seeds.totals.resize(recording_.graph.losses.size());
  for (const Batch& batch : microbatches) {
    const std::int64_t samples = num_samples(recording_.graph, batch);
    if (samples != plan_.batch.microbatch) {
      throw Error(ErrorKind::kInvalidArgument,
                  "microbatch " + std::to_string(seeds.weights.size()) + " has " +
                      std::to_string(samples) + " samples, the plan says " +
                      std::to_string(plan_.batch.microbatch));
    }
    seeds.weights.push_back(weights_.weights(batch, samples));
    for (std::size_t i = 0; i < seeds.totals.size(); ++i) {
      seeds.totals[i] += seeds.weights.back()[i];
    }
  }
  for (std::size_t i = 0; i < seeds.totals.size(); ++i) {
    if (seeds.totals[i] == 0) {
      throw Error(ErrorKind::kInvalidArgument,
                  "the weights of loss '" + recording_.graph.losses[i].name +
                      "' add up to 0 over the step, so its mean is not defined");
    }
  }
  return seeds;
}

std::vector<program::StageRun> SerialExecutor::forward(const program::MicrobatchInput& input) {
  std::vector<program::StageRun> runs;
  std::vector<program::ValueMap> received(stages_.size());
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    runs.push_back(stages_[s].forward(input, std::move(received[s])));
    for (const layout::Crossing& crossing : stages_[s].sends()) {
      const at::Tensor value = stages_[s].value(runs[s], crossing.value);
      for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
        received[crossing.stages[i]][crossing.value] = program::copy_across(value);
      }
    }
  }
  return runs;
}

program::ValueMap SerialExecutor::loss_seeds(const std::vector<program::StageRun>& runs,
                                             const std::vector<double>& weights,
                                             const std::vector<double>& totals,
                                             StepLosses& losses) const {
  program::ValueMap result;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (int index : stages_[s].losses()) {
      const graph::Loss& loss = recording_.graph.losses[index];
      const double weight = weights[index];
      const at::Tensor value = stages_[s].value(runs[s], loss.value);
      losses.losses[index].sum += sum_of(loss, value, weight);
      losses.losses[index].weight += weight;
      if (loss.coefficient == 0) continue;
      const double seed = loss.coefficient * (loss.weight ? 1.0 : weight) / totals[index];
      const at::Tensor tensor = at::scalar_tensor(seed, value.options());
      // A value returned as several losses gets the sum of their seeds.
      auto [known, is_new] = result.emplace(loss.value, tensor);
      if (!is_new) known->second = known->second.add(tensor);
    }
  }
  return result;
}

void SerialExecutor::backward(std::vector<program::StageRun> runs,
                              const program::ValueMap& loss_seeds) {
  std::vector<program::ValueMap> seeds(stages_.size());
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t i = 0; i < recording_.graph.losses.size(); ++i) {
      const auto seed = loss_seeds.find(recording_.graph.losses[i].value);
      if (seed == loss_seeds.end() || !stages_[s].seeds_loss(static_cast<int>(i))) continue;
      seeds[s][seed->first] = seed->second;
    }
  }
  for (std::size_t s = stages_.size(); s-- > 0;) {
    program::ValueMap gradients = stages_[s].backward(std::move(runs[s]), seeds[s]);
    for (const layout::Crossing& crossing : stages_[s].receives()) {
      const auto gradient = gradients.find(crossing.value);
      if (gradient == gradients.end()) continue;
      const int to = layout::previous_in_chain(crossing, static_cast<int>(s));
      seeds[to][crossing.value] = program::copy_across(gradient->second);
    }
  }
}

StepLosses SerialExecutor::run_step(std::int64_t step, const std::vector<Batch>& microbatches) {
  if (static_cast<std::int64_t>(microbatches.size()) != plan_.batch.num_microbatches()) {
    throw Error(ErrorKind::kInvalidArgument,
                "a step has " + std::to_string(plan_.batch.num_microbatches()) +
                    " microbatches, got " + std::to_string(microbatches.size()));
  }
  StepLosses losses = empty_losses(recording_.graph);
  const Seeds seeds = weigh(microbatches);
  std::vector<std::vector<program::NormStatistics>> statistics;
  accumulator_.begin_step();
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    const auto microbatch = static_cast<std::int64_t>(m);
    auto runs = forward({microbatches[m], plan_.batch.microbatch, {seed_, step, microbatch}});
    statistics.emplace_back();
    for (program::StageRun& run : runs) {
      std::move(run.slots.statistics.begin(), run.slots.statistics.end(),
                std::back_inserter(statistics.back()));
    }
    const program::ValueMap of_losses = loss_seeds(runs, seeds.weights[m], seeds.totals, losses);
    backward(std::move(runs), of_losses);
    if ((microbatch + 1) % plan_.batch.microbatches_per_lane() == 0) accumulator_.end_lane();
  }
  accumulator_.end_step();
  program::commit_batch_norms(recording_, statistics);
  program::commit_counters(recording_, static_cast<std::int64_t>(microbatches.size()),
                           plan_.batch.microbatch);
  return losses;
}

Evaluator::Evaluator(const record::Recording& recording)
    : recording_(recording), weights_(recording), losses_(empty_losses(recording.graph)) {
  std::vector<int> positions(recording.graph.nodes.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<graph::ValueId> keep;
  for (const graph::Loss& loss : recording.graph.losses) keep.push_back(loss.value);
  nodes_ = std::make_unique<program::NodeProgram>(recording, std::move(positions), keep,
                                                  [this](graph::ValueId parameter, graph::NodeId) {
                                                    return recording_.tensors[parameter].detach();
                                                  });
}

void Evaluator::add(const Batch& batch, std::uint64_t seed) {
  const std::int64_t samples = num_samples(recording_.graph, batch);
  const std::vector<double> weights = weights_.weights(batch, samples);
  program::Slots slots = nodes_->make_slots();
  program::put_inputs(recording_.graph, *nodes_, batch, slots);
  nodes_->run(slots, samples, {seed, 0, num_batches_++});
  for (std::size_t i = 0; i < recording_.graph.losses.size(); ++i) {
    const graph::Loss& loss = recording_.graph.losses[i];
    losses_.losses[i].sum += sum_of(loss, slots.tensors[*nodes_->slot_of(loss.value)], weights[i]);
    losses_.losses[i].weight += weights[i];
  }
}

}  // namespace trireme::serial
