#include "trireme/base/error.h"
#include "trireme/command/ending.h"
#include "trireme/command/train.h"
#include "trireme/command/training_requests.h"
#include "trireme/command/weights_file.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/memory/resident.h"
#include "trireme/engine/train/finite.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/engine/train/session.h"

namespace trireme::command {
namespace {

void check_options(const TrainOptions& options) {
  for (const auto& [name, value] :
       {std::pair("--timeline", options.timeline), std::pair("--run", options.run.folder)}) {
    if (value.empty()) continue;
    throw Error(ErrorKind::kInvalidArgument,
                std::string(name) + " is for ranks; --serial is for comparisons with them");
  }
}

}  // namespace

int train_serially(const TrainOptions& options, const Context& context) {
  check_options(options);
  check_outputs(options);
  const std::int64_t microbatch = options.plan.microbatch();
  const Training training(context, microbatch);
  const layout::Plan plan = options.plan.plan_for(training.recorded.graph);
  if (!options.no_first_step_check) {
    train::check_first_step(training.workload, training.recorded, plan,
                            {.seed = options.session.seed}, Logger(context.environment.log_level));
  }
  train::Session session(training.workload, training.recorded, plan, options.session);
  memory::reset_peak();
  ReportOptions report_options = options.report;
  report_options.columns = terminal_columns();
  TrainingReport report(plan, options.session.optimizer, report_options);
  std::optional<SignalRequests> requests;
  if (options.keeps_something()) requests.emplace();
  int stop_signal = 0;
  while (session.next_step() < options.report.num_steps && stop_signal == 0) {
    report.add(session.step());
    if (requests) stop_signal = requests->take().stop_signal;
  }
  report.finish();
  if (!options.session.allow_nonfinite) {
    train::require_finite(train::not_finite(session.store()), session.next_step() - 1);
  }
  Ending ending;
  ending.add_measured({.median_step_ms = report.median_step_ms(),
                       .peak_bytes = {memory::memory_use().peak_bytes - training.data_bytes},
                       .resident_peak_bytes = {memory::resident_peak_bytes()}},
                      plan);
  const bool is_stopped = session.next_step() < options.report.num_steps;
  if (is_stopped) {
    ending.add_stop({.done = session.next_step(),
                     .num_steps = options.report.num_steps,
                     .reason = signal_text(stop_signal)});
  }
  if (!options.save.empty()) {
    ending.add_weights(state_of(training.workload.model), options.save);
  }
  if (training.workload.evaluation && !is_stopped) {
    const auto recording = record_model(context, training.workload, graph::Mode::kEval, microbatch);
    ending.add_evaluation(
        train::evaluate(training.workload, recording, plan.batch.microbatch, session.next_step()));
  }
  ending.print(context);
  return 0;
}

}  // namespace trireme::command
