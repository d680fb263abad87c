#include "trireme/engine/reference/serial_executor.h"

#include <ATen/Functions.h>

#include <numeric>
#include <utility>

#include "trireme/engine/program/boundary_copy.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::reference {

SerialExecutor::SerialExecutor(const record::Recording& recording, const layout::Plan& plan,
                               const parameters::ParameterStore& store, std::uint64_t seed,
                               const SerialOptions& options)
    : recording_(recording),
      plan_((layout::check(plan, store.map().graph_sha256, recording.graph), plan)),
      seed_(seed),
      counts_(options.counts),
      accumulator_(store, recording.graph, static_cast<int>(plan.batch.lanes),
                   {.dtype = options.gradient_dtype}),
      sink_(accumulator_),
      sites_(recording, sink_),
      weights_(recording),
      commits_(recording, plan.batch.microbatch),
      stages_(recording, plan_, sites_, {.scratch = options.scratch, .capture = options.capture}) {}

std::vector<program::CaptureReport> SerialExecutor::capture_reports() const {
  std::vector<program::CaptureReport> reports;
  for (const program::StageProgram& stage : stages_.stages()) {
    reports.push_back(stage.capture_report());
  }
  return reports;
}

graph::BatchSize SerialExecutor::size_of(const Batch& batch) const {
  return {plan_.batch.microbatch, program::shorter_of(recording_.graph, batch)};
}

std::vector<std::vector<double>> SerialExecutor::weigh(
    const std::vector<Batch>& microbatches) const {
  std::vector<std::vector<double>> result;
  for (const Batch& batch : microbatches) {
    const graph::BatchSize size = size_of(batch);
    program::require_size(recording_.graph, batch, size, static_cast<std::int64_t>(result.size()));
    result.push_back(weights_.weights(batch, size));
  }
  return result;
}

void SerialExecutor::add_losses(const std::vector<program::StageRun>& runs,
                                const std::vector<double>& weights, StepLosses& losses) const {
  for (std::size_t s = 0; s < runs.size(); ++s) {
    const program::StageProgram& stage = stages_.stages()[s];
    for (int index : stage.losses()) {
      const graph::LossOutput& loss = recording_.graph.losses[index];
      const at::Tensor value = stage.value(runs[s], loss.value);
      losses.losses[index].sum += program::sum_of(loss, value, plan_.batch.microbatch);
      losses.losses[index].weight += weights[index];
    }
  }
}

StepLosses SerialExecutor::run_step(std::int64_t step, const std::vector<Batch>& microbatches,
                                    double loss_scale, const MayCommit& may_commit) {
  if (static_cast<std::int64_t>(microbatches.size()) != plan_.batch.num_microbatches()) {
    throw Error(ErrorKind::kInvalidArgument,
                "a step has " + std::to_string(plan_.batch.num_microbatches()) +
                    " microbatches, got " + std::to_string(microbatches.size()));
  }
  StepLosses losses = program::empty_losses(recording_.graph);
  const auto weights = weigh(microbatches);
  std::vector<double> totals =
      program::scaled(program::total_weights(recording_.graph, weights), loss_scale);
  if (counts_) {
    const auto counts = [&](const std::string& loss) { return counts_(step, loss); };
    totals = program::counted(std::move(totals), recording_.graph, counts);
    program::report_only(losses, counts);
  }
  std::vector<std::vector<program::NormStatistics>> statistics;
  accumulator_.begin_step();
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    const auto microbatch = static_cast<std::int64_t>(m);
    auto runs =
        stages_.forward({microbatches[m], size_of(microbatches[m]), {seed_, step, microbatch}});
    statistics.emplace_back();
    for (program::StageRun& run : runs) {
      std::move(run.slots.statistics.begin(), run.slots.statistics.end(),
                std::back_inserter(statistics.back()));
    }
    add_losses(runs, weights[m], losses);
    stages_.backward(std::move(runs), plan_.batch.microbatch, totals);
    if ((microbatch + 1) % plan_.batch.microbatches_per_lane() == 0) accumulator_.end_lane();
  }
  accumulator_.end_step();
  if (may_commit && !may_commit(losses)) return losses;
  commits_.fold(statistics);
  commits_.count(static_cast<std::int64_t>(microbatches.size()));
  return losses;
}

Evaluator::Evaluator(const record::Recording& recording)
    : recording_(recording), weights_(recording), losses_(program::empty_losses(recording.graph)) {
  std::vector<int> positions(recording.graph.nodes.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<graph::ValueId> keep;
  for (const graph::LossOutput& loss : recording.graph.losses) keep.push_back(loss.value);
  for (const graph::Output& output : recording.graph.outputs) keep.push_back(output.value);
  nodes_ = std::make_unique<program::NodeProgram>(recording, std::move(positions), keep,
                                                  [this](graph::ValueId parameter, graph::NodeId) {
                                                    return recording_.tensors[parameter].detach();
                                                  });
}

Batch Evaluator::add(const Batch& batch, std::uint64_t seed) {
  const graph::BatchSize size = program::size_of(recording_.graph, batch);
  const std::vector<double> weights = weights_.weights(batch, size);
  program::Slots slots = nodes_->make_slots();
  program::put_inputs(recording_.graph, *nodes_, batch, slots);
  nodes_->run(slots, size, {seed, 0, num_batches_++});
  for (std::size_t i = 0; i < recording_.graph.losses.size(); ++i) {
    const graph::LossOutput& loss = recording_.graph.losses[i];
    losses_.losses[i].sum +=
        program::sum_of(loss, slots.tensors[*nodes_->slot_of(loss.value)], size.samples);
    losses_.losses[i].weight += weights[i];
  }
  Batch outputs;
  for (const graph::Output& output : recording_.graph.outputs) {
    outputs.set(output.name,
                program::output_of(recording_.graph, output, batch, [&](graph::ValueId value) {
                  return slots.tensors[*nodes_->slot_of(value)];
                }));
  }
  return outputs;
}

}  // namespace trireme::reference
