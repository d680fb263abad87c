#include "trireme/engine/train/serial_session.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "trireme/data/range.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/evaluation_metrics.h"
#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/learning_rate.h"
#include "trireme/engine/train/parameter_groups.h"
#include "trireme/engine/train/planned_recording.h"
#include "trireme/engine/train/reader_threads.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/training_state.h"
#include "trireme/engine/train/turns.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"

namespace trireme::train {

double update(parameters::Optimizer& optimizer, const parameters::ParameterStore& store,
              parameters::GradientBuffers& gradients, const OptimizerOptions& options,
              std::int64_t step, const parameters::HasGradient& has_gradient) {
  const auto moved = moved_in(options, step, has_gradient);
  double norm = 0;
  if (options.clip_norm > 0) {
    norm = parameters::global_norm(parameters::square_norms(store, gradients, moved));
    parameters::clip(gradients, norm, options.clip_norm);
  }
  const double rate = learning_rate_at(options, step);
  parameters::apply(optimizer, store, gradients, moved,
                    [&](const std::string& name) { return rule_of(options, name, rate); });
  return norm;
}

SerialSession::SerialSession(const Workload& workload, const record::Recording& recorded,
                             const layout::Plan& plan, const TrainingOptions& options)
    : workload_(workload),
      recorded_(recorded),
      recording_(planned_recording(recorded, plan)),
      plan_(plan),
      options_(options),
      reader_(workload, plan.batch, options.seed, order_of(options),
              kernels::on_threads(threads_at_once(options.reader_threads, cores_of_rank(1)))),
      store_(layout::make_parameter_map(recording_.graph, plan), recording_.graph,
             recording_.tensors, {.fill = workload.model.fill}),
      executor_(recording_, plan_, store_, options.seed,
                {.gradient_dtype = checked_gradient_dtype(options),
                 .counts = counting_losses(options.optimizer),
                 .capture = capture_of(options)}),
      optimizer_(make_optimizer(options.optimizer)),
      loss_scale_(options.loss_scale) {
  fill_parameters(workload_.model);
  parameters::check_parameters(*optimizer_, store_);
  check_groups(options.optimizer.groups, recording_.graph);
  check_turns(options.optimizer.turns, recording_.graph);
  check_buffers(recording_.graph, options.buffers, {});
}

std::vector<Batch> SerialSession::microbatches(std::int64_t step) const {
  std::vector<Batch> result;
  for (std::int64_t m = 0; m < plan_.batch.num_microbatches(); ++m) {
    result.push_back(reader_.read(step, m));
  }
  return result;
}

StepReport SerialSession::run(std::int64_t step) {
  if (checks_drift(options_, step)) {
    const memory::PeakPause pause;
    record::check_drift(recorded_.graph, workload_.model, reader_.maker(), step);
  }
  const auto begin = std::chrono::steady_clock::now();
  StepReport report{.step = step};
  if (loss_scale_.is_on()) report.loss_scale = loss_scale_.value();
  parameters::LaneAccumulator& sums = executor_.gradients();
  const auto has_gradient = [&](const std::string& name) { return sums.has_gradient(name); };
  const auto judge = [&](const StepLosses& losses) {
    loss_scale_.unscale(sums.gradients());
    report.is_skipped = !may_update(losses, has_gradient, step, report.gradient_norm);
    return !report.is_skipped;
  };
  report.losses = executor_.run_step(step, microbatches(step), loss_scale_.value(), judge);
  if (!report.is_skipped) {
    update(*optimizer_, store_, sums.gradients(), options_.optimizer, step, has_gradient);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

/// Whether the step's numbers are finite, where that is asked for; and the norm.
bool SerialSession::may_update(const StepLosses& losses,
                               const parameters::HasGradient& has_gradient, std::int64_t step,
                               double& norm) {
  parameters::SquareNorms norms;
  if (needs_norm(options_)) {
    norms = parameters::square_norms(store_, executor_.gradients().gradients(),
                                     moved_in(options_.optimizer, step, has_gradient));
  }
  norm = parameters::global_norm(norms);
  std::string problem = not_finite(losses);
  if (problem.empty()) problem = not_finite(norms);
  if (loss_scale_.is_on()) return loss_scale_.end_step(problem, step);
  if (!options_.allow_nonfinite) require_finite(problem, step);
  return true;
}

StepReport SerialSession::step() {
  try {
    StepReport report = run(next_step_);
    ++next_step_;
    return report;
  } catch (Error& error) {
    throw error.add({.step = next_step_});
  }
}

void check_evaluation_data(const graph::Graph& graph, const Workload& workload,
                           std::int64_t microbatch) {
  if (!workload.evaluation) return;
  check_metrics(workload, graph);
  if (workload.evaluation->padded_lengths() != workload.training->padded_lengths()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "the samples of the evaluation are padded to other lengths than those of the training; "
        "give both the same Source::padded_lengths");
  }
  if (graph.microbatch == 0) return;
  graph::check_samples(graph, microbatch);
  const std::int64_t num_samples = workload.evaluation->num_samples();
  if (num_samples % microbatch == 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the model's code for evaluation holds for microbatches of " +
                  std::to_string(microbatch) + " samples alone, and the " +
                  std::to_string(num_samples) + " samples of the evaluation leave a remainder of " +
                  std::to_string(num_samples % microbatch) +
                  "; choose a microbatch size that divides them, leave samples out, or make the "
                  "model's code independent of the batch size");
}

StepLosses evaluate(const Workload& workload, const record::Recording& recording,
                    std::int64_t microbatch, std::int64_t step, int reader_threads) {
  if (!workload.evaluation) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; set Workload::evaluation");
  }
  check_evaluation_data(recording.graph, workload, microbatch);
  const record::ModeGuard in_mode(workload.model, graph::Mode::kEval);
  const BatchReader reader(workload.evaluation, workload.model,
                           kernels::on_threads(threads_at_once(reader_threads, cores_of_rank(1))));
  reference::Evaluator evaluator(recording);
  const std::int64_t num_samples = workload.evaluation->num_samples();
  const std::int64_t num = data::num_evaluation_microbatches(num_samples, microbatch);
  std::optional<EvaluationMetrics> metrics;
  if (workload.metrics) metrics.emplace(workload);
  for (std::int64_t m = 0; m < num; ++m) {
    const data::IndexRange range = data::evaluation_range(num_samples, microbatch, m);
    Batch batch = reader.read(range);
    set_step_scalars(batch, workload.model, step);
    const Batch outputs = evaluator.add(batch, 0);
    if (metrics) metrics->add(outputs);
  }
  StepLosses losses = evaluator.losses();
  if (metrics) std::ranges::copy(metrics->results(losses), std::back_inserter(losses.losses));
  return losses;
}

}  // namespace trireme::train
