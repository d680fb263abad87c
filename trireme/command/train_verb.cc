#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "trireme/base/exit_code.h"
#include "trireme/base/files.h"
#include "trireme/command/ending.h"
#include "trireme/command/run_options.h"
#include "trireme/command/train_options.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/launch/local_ranks.h"
#include "trireme/session/planning.h"
#include "trireme/session/run_keeper.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::command {
namespace {

constexpr double kF16LossScale = 65536;

/// What is written in the end must not fail only then. kIo.
void check_outputs(const TrainOptions& options) {
  for (const std::string& path : {options.save, options.timeline}) {
    if (!path.empty()) check_writable(path);
  }
}

/// Whatever can be found wrong before processes are started, data prepared and models made: a plan
/// and its ranks, the batch, the optimizer, outputs, the run's folder. kInvalidArgument, kIo,
/// kUnavailable where another process trains there.
void check_before_start(const TrainOptions& options, const Context& context) {
  context.workload();
  options.plan.check();
  const bool is_by_hand =
      options.plan.file.empty() && !session::plans_itself(options.session, options.plan.ranks);
  const std::int64_t by_hand = session::num_ranks_by_hand(options.plan.options);
  if (is_by_hand && options.plan.ranks != 0 && options.plan.ranks != by_hand) {
    refuse_ranks(by_hand, options.plan.ranks);
  }
  train::make_optimizer(options.session.training.optimizer);
  check_outputs(options);
  if (!options.session.run.folder.empty()) session::check_run_folder(options.session.run);
  if (options.session.serial && !options.timeline.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--timeline is for ranks; --serial is for comparisons with them");
  }
}

/// Prints what a session tells; made once its plan is known.
class Progress {
 public:
  Progress(const TrainOptions& options, const Context& context)
      : options_(options), context_(context) {}

  SessionCallbacks callbacks() {
    return {.on_step = [this](const StepReport& step) { report_->add(step); },
            .on_evaluation =
                [this](std::int64_t step, const StepLosses& losses) {
                  report_->print_evaluation(step, losses);
                },
            .on_plan =
                [this](const Plan&, const std::string& why) {
                  if (!context_.json) fmt::print("{}", why);
                },
            .on_phase = [this](const std::string& phase) { say_phase(phase, context_.json); }};
  }

  /// Before the first step.
  void start(const Session& session) {
    ReportOptions options = options_.report;
    options.num_steps = *options_.session.num_steps;
    options.columns = terminal_columns();
    if (!options_.keeps_something()) {
      say_phase("the weights are not kept: give --run or --save", context_.json);
    }
    report_.emplace(session.plan().value(), options_.session.training.optimizer, options);
  }

  void finish() { report_->finish(); }

 private:
  const TrainOptions& options_;
  const Context& context_;
  std::optional<TrainingReport> report_;
};

/// What is left of a training that has ended, on rank 0; elsewhere only the parts that all ranks have
/// in common.
Ending end_of(Session& session, const SessionEnd& end, const TrainOptions& options,
              const Context& context, train::Tensors& weights) {
  Ending ending;
  ending.add_measured(end.measured, session.plan().value());
  if (!end.checkpoint.empty()) ending.add_file("checkpoint", end.checkpoint);
  if (!end.best_checkpoint.empty()) ending.add_file("best_checkpoint", end.best_checkpoint);
  if (!end.stopped_by.empty()) {
    ending.add_stop({.done = end.steps_done,
                     .num_steps = *options.session.num_steps,
                     .reason = end.stopped_by,
                     .can_resume = !options.session.run.folder.empty()});
  }
  if (end.evaluation) ending.add_evaluation(*end.evaluation);
  if (!options.timeline.empty()) session.save_timeline(options.timeline);
  if (!options.save.empty()) weights = session.weights();
  if (options.session.run.folder.empty() || !end.stopped_by.empty()) return ending;
  const std::string examples = session.examples();
  if (examples.empty()) return ending;
  write_file_atomically(std::filesystem::path(options.session.run.folder) / "examples.txt",
                        examples);
  if (!context.json) fmt::print("{}\n", examples);
  return ending;
}

/// Steps that a run has done so far, of which some may be in no checkpoint; 0 where there is none.
std::int64_t steps_of(const std::string& run) {
  const std::filesystem::path metrics = std::filesystem::path(run) / "metrics.jsonl";
  if (!is_there(metrics)) return 0;
  const std::string text = read_file(metrics);
  return std::count(text.begin(), text.end(), '\n');
}

/// The ranks of this command line, started again from the newest checkpoint where one of them is lost: as often as
/// --restarts says, as long as each start gets further than the one before.
int train_with_restarts(const TrainOptions& options, const Context& context) {
  std::vector<const char*> words(context.argv.begin(), context.argv.end());
  words.push_back("--resume");
  const std::string& run = options.session.run.folder;
  std::int64_t before = -1;
  for (int left = options.restarts;; --left) {
    const bool is_first = left == options.restarts;
    const std::span<const char* const> argv = is_first ? context.argv : std::span(words);
    const int code = launch::run_local_ranks(options.num_processes(), argv);
    if (code != kFailed || left == 0) return code;
    const std::int64_t now = steps_of(run);
    if (now <= before) {
      fmt::print(stderr, "trireme: it ended again where it had ended before; not started again\n");
      return code;
    }
    before = now;
    fmt::print(stderr,
               "trireme: started again from the newest checkpoint of {}, {} restarts left\n", run,
               left - 1);
  }
}

/// Ranks that something else has started are started again by that. kInvalidArgument.
void check_restarts(Launcher launcher) {
  if (launcher == Launcher::kTrireme) return;
  throw Error(ErrorKind::kInvalidArgument,
              "--restarts is for ranks that this command starts; these were started by another "
              "launcher: leave "
              "it out, and have that start them again, with --resume (torchrun: --max-restarts)");
}

/// This rank's part.
int train_rank(const TrainOptions& options, const Context& context, World& world) {
  const bool is_first = world.rank() == 0;
  if (is_first) check_outputs(options);
  // All ranks give their weights and times where one writes them.
  collectives::require_same(
      world.value(),
      fmt::format("save {}\ntimeline {}\n", !options.save.empty(), !options.timeline.empty()),
      "training options");
  Progress progress(options, context);
  SessionOptions wanted = options.session;
  wanted.plan = options.plan.given();
  wanted.callbacks = progress.callbacks();
  std::optional<Session> session(std::in_place, world, context.workload(), std::move(wanted));
  if (is_first) progress.start(*session);
  const SessionEnd end = session->run();
  if (session->is_reader()) {
    session.reset();
    world.shutdown();
    return kDone;
  }
  if (is_first) progress.finish();
  train::Tensors weights;
  Ending ending = end_of(*session, end, options, context, weights);
  session.reset();
  world.shutdown();
  if (!is_first) return kDone;
  if (!options.save.empty()) ending.add_weights(weights, options.save);
  ending.print(context);
  return kDone;
}

}  // namespace

Body add_train(CLI::App& app, Context& context) {
  auto options = std::make_shared<TrainOptions>();
  add_train_options(app, *options);
  app.footer(
      "Example: trireme train --model t5 --run run --ranks 4 --batch 64 --lanes 2 --steps 200\n"
      "after a crash, or on another number of ranks: trireme train --run run --resume");
  return [options, &app, &context] {
    SessionOptions& wanted = options->session;
    wanted.model = context.model_name();
    wanted.batch_sizes = context.sizes;
    wanted.planning = options->plan.options;
    wanted.training.seed = context.seed;
    if (context.precision == Precision::kF16 && app.count("--loss-scale") == 0) {
      wanted.training.loss_scale.initial = kF16LossScale;
    }
    wanted.training.buffers = train::parse_replica_policies(options->buffers);
    wanted.initial.renamed = parse_renames(options->renamed);
    wanted.run.given = given_options(app);
    wanted.handles_signals = options->keeps_something();
    options->report.json = context.json;
    if (!context.environment.ranks) check_before_start(*options, context);
    const auto train_here = [&](World& world) { return train_rank(*options, context, world); };
    if (wanted.serial) return run_alone(context, train_here);
    if (options->restarts > 0) {
      if (!context.environment.ranks) return train_with_restarts(*options, context);
      check_restarts(context.environment.ranks->launcher);
    }
    return run_in_world(context, options->num_processes(), train_here);
  };
}

}  // namespace trireme::command
