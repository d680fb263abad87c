#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "trireme/arguments/numbers.h"
#include "trireme/base/exit_code.h"
#include "trireme/base/files.h"
#include "trireme/command/ending.h"
#include "trireme/command/run_options.h"
#include "trireme/command/training_arguments.h"
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

struct TrainOptions {
  PlanArguments plan;  ///< Its options become those of `session`.
  ReportOptions report;
  std::string save;
  std::string timeline;
  SessionOptions session;
  std::vector<std::string> buffers;  ///< --buffer, for `session`.
  std::vector<std::string> renamed;  ///< --init-rename, likewise.
  int restarts = 0;

  /// Whether a training that is stopped leaves what it has learnt.
  bool keeps_something() const { return !session.run.folder.empty() || !save.empty(); }
};

/// What evaluations decide; options that need a run's folder.
void add_evaluation_options(CLI::App& app, RunOptions& run, std::vector<CLI::Option*>& own) {
  own.push_back(app.add_option("--keep-best", run.keep_best,
                               "Checkpoints with the best evaluations, which stay beside those")
                    ->check(arguments::not_negative())
                    ->capture_default_str());
  own.push_back(app.add_option(
      "--best-by", run.best_by,
      "Loss or metric of evaluations that says which are best; the step's loss where "
      "it is not given"));
  own.push_back(
      app.add_flag("--best-is-most", run.best_is_most, "The more the better, as of an accuracy"));
  own.push_back(
      app.add_option("--patience", run.patience,
                     "Stop after so many evaluations in a row that are no better; 0: never")
          ->check(arguments::not_negative())
          ->capture_default_str());
  own.push_back(
      app.add_option("--target", run.target, "Stop after an evaluation that is as good as this"));
  own.push_back(
      app.add_option(
             "--evaluate-every", run.evaluate_every,
             "Steps between evaluations; 0 for one before the first step and one at the end")
          ->check(arguments::not_negative())
          ->capture_default_str());
}

void add_run_options(CLI::App& app, RunOptions& run, PlanOptions& planning) {
  CLI::Option* folder =
      app.add_option("--run", run.folder,
                     "Keep the run in this folder: plan, metrics, checkpoints. Without --plan and "
                     "--cut-at, the ranks measure and the best plan is taken");
  app.add_flag("--resume", run.resume,
               "Resume from the newest checkpoint of the folder, if it has one; --ranks may differ")
      ->needs(folder);
  std::vector<CLI::Option*> own;
  own.push_back(app.add_option("--checkpoint-every", run.checkpoint_every,
                               "Steps between checkpoints; 0 for one at the end")
                    ->check(arguments::not_negative())
                    ->capture_default_str());
  own.push_back(
      app.add_option("--checkpoint-writes", run.checkpoint_writes,
                     "beside: written by a thread, from a copy, while the steps go on; wait; auto: "
                     "beside where --device-memory leaves room for the copy")
          ->transform(CLI::CheckedTransformer(
              std::map<std::string, CheckpointWrites>{{"auto", CheckpointWrites::kAuto},
                                                      {"wait", CheckpointWrites::kWait},
                                                      {"beside", CheckpointWrites::kBeside}}))
          ->option_text("{auto,wait,beside}=auto"));
  own.push_back(
      app.add_option("--checkpoint-errors", run.checkpoint_errors,
                     "What a checkpoint that cannot be written does: stop the run, or a warning")
          ->transform(CLI::CheckedTransformer(std::map<std::string, CheckpointErrors>{
              {"stop", CheckpointErrors::kStop}, {"continue", CheckpointErrors::kContinue}}))
          ->option_text("{stop,continue}=stop"));
  own.push_back(app.add_option("--keep-last", run.keep_last, "Checkpoints that stay")
                    ->check(arguments::positive())
                    ->capture_default_str());
  add_evaluation_options(app, run, own);
  const std::vector<CLI::Option*> for_planning = {
      add_objective_option(app, planning.objective),
      add_slowdown_option(app, planning.max_slowdown),
      app.add_flag(
          "--copies", planning.may_copy,
          "Let the plan run cheap shared nodes once per consumer: other bits, which the run "
          "then keeps on any number of ranks"),
      add_device_memory_option(app, planning.device_memory_bytes)};
  for (CLI::Option* option : for_planning) {
    option->excludes(app.get_option("--plan"))->excludes(app.get_option("--cut-at"));
    own.push_back(option);
  }
  for (CLI::Option* option : own) option->needs(folder);
}

void add_restarts_option(CLI::App& app, int& restarts) {
  app.add_option("--restarts", restarts,
                 "How often ranks that were started here are started again from the newest "
                 "checkpoint where one is lost or fails")
      ->needs(app.get_option("--run"))
      ->check(arguments::not_negative())
      ->capture_default_str();
}

/// From texts `OLD=NEW`. kInvalidArgument for any other.
std::vector<std::pair<std::string, std::string>> parse_renames(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> renamed;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("--init-rename {}: expected OLD=NEW, either may be empty", text));
    }
    renamed.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return renamed;
}

void add_initial_options(CLI::App& app, TrainOptions& options) {
  InitialWeights& initial = options.session.initial;
  app.add_option("--init-from", initial.file, "Begin with the weights of this safetensors file");
  app.add_option("--init-rename", options.renamed,
                 "Names in the file that begin with OLD begin with NEW in the model")
      ->type_name("OLD=NEW")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_flag("--init-partial", initial.partial,
               "Take what fits, though the model has other tensors, or some of another shape");
  app.add_flag(
      "--deferred-init", options.session.deferred_init,
      "For a model that is larger than a rank's memory: each rank initialises its own stages "
      "alone, to the same values");
}

void add_loss_scale_options(CLI::App& app, LossScaleOptions& scale) {
  app.add_option("--loss-scale", scale.initial,
                 "Multiply losses by this power of two in backwards; a step that is not finite is "
                 "skipped and halves it. 65536 with --precision f16, else 0: none");
  app.add_option("--loss-scale-steps", scale.growth_steps, "Finite steps after which it is doubled")
      ->check(arguments::positive())
      ->capture_default_str();
}

void add_check_options(CLI::App& app, TrainOptions& options) {
  CLI::Option* steps =
      app.add_option("--drift-check-steps", options.session.training.drift_check_steps,
                     "Steps at which the model is recorded again and compared")
          ->delimiter(',')
          ->check(arguments::not_negative())
          ->capture_default_str();
  app.add_flag_callback(
         "--no-drift-check", [&options] { options.session.training.drift_check_steps.clear(); },
         "Never record the model again")
      ->excludes(steps);
  app.add_flag_callback(
      "--no-first-step-check", [&options] { options.session.first_step_check = false; },
      "Train without comparing, before the first step, a small step of the plan's stages "
      "with the model's own");
  add_loss_scale_options(app, options.session.training.loss_scale);
  add_tolerant_option(app, options.session.training.tolerant);
  add_buffer_option(app, options.buffers);
  app.add_flag(
      "--allow-nonfinite", options.session.training.allow_nonfinite,
      "Continue after a loss or a gradient that is NaN or infinite; else the run ends there");
}

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
    const int code = launch::run_local_ranks(options.plan.num_ranks(), argv);
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
  const auto begin_group = [&app](const char* name) { app.option_defaults()->group(name); };
  begin_group("Plan");
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--ranks", options->plan.ranks,
                 "Processes to start here; as many as the plan has ranks where it is not given");
  app.add_flag("--serial", options->session.serial,
               "Run all stages in this process, one after the other");
  app.add_option("--profile", options->session.profile,
                 "Profile that the plan was made from, or is to be made from: else it is measured");
  app.add_option("--topology", options->session.topology, "Topology that goes with it")
      ->capture_default_str();
  begin_group("Steps");
  app.add_option("--steps", options->session.num_steps.emplace(100), "Steps of the whole run")
      ->check(arguments::not_negative())
      ->capture_default_str();
  app.add_option("--log-every", options->report.log_every, "Steps between printed lines")
      ->check(arguments::positive())
      ->capture_default_str();
  add_optimizer_options(app, options->session.training.optimizer);
  add_initial_options(app, *options);
  begin_group("Run folder");
  add_run_options(app, options->session.run, options->plan.options);
  add_restarts_option(app, options->restarts);
  begin_group("Files");
  app.add_option("--metrics", options->session.metrics_file,
                 "Write a JSON line per step here; else into the run's folder");
  app.add_option("--save", options->save, "Write the trained weights to this safetensors file");
  app.add_option("--timeline", options->timeline,
                 "Write a Chrome trace of the last step to this file");
  begin_group("Checks");
  add_check_options(app, *options);
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
    if (options->restarts > 0 && !context.environment.ranks) {
      return train_with_restarts(*options, context);
    }
    return run_in_world(context, options->plan.num_ranks(), train_here);
  };
}

}  // namespace trireme::command
