#include "trireme/command/train_options.h"

#include <fmt/format.h>

#include <map>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/words.h"
#include "trireme/command/run_options.h"
#include "trireme/command/training_arguments.h"
#include "trireme/error.h"

namespace trireme::command {
namespace {

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
  own.push_back(app.add_flag("--evaluate-elsewhere", run.evaluates_elsewhere,
                             "Not by these ranks, but for the last: by `trireme follow`, from "
                             "checkpoints, while the steps go on"));
}

void add_run_options(CLI::App& app, RunOptions& run, PlanOptions& planning) {
  CLI::Option* folder =
      app.add_option("--run", run.folder,
                     "Keep the run in this folder: plan, metrics, checkpoints. Without --plan and "
                     "--cut-at, the ranks measure and the best plan is taken");
  app.add_flag("--resume", run.resume,
               "Resume from the newest checkpoint of the folder, if it has one; --ranks may differ")
      ->needs(folder);
  planning.may_join = true;
  std::vector<CLI::Option*> own;
  own.push_back(app.add_option("--checkpoint-every", run.checkpoint_every,
                               "Steps between checkpoints; 0 for one at the end")
                    ->check(arguments::not_negative())
                    ->capture_default_str());
  own.push_back(arguments::add_words<CheckpointWrites>(
      app, "--checkpoint-writes", run.checkpoint_writes,
      "beside: written by a thread, from a copy, while the steps go on; wait; auto: beside where "
      "--device-memory leaves room for the copy",
      {{"auto", CheckpointWrites::kAuto},
       {"wait", CheckpointWrites::kWait},
       {"beside", CheckpointWrites::kBeside}}));
  own.push_back(arguments::add_words<CheckpointErrors>(
      app, "--checkpoint-errors", run.checkpoint_errors,
      "What a checkpoint that cannot be written does: stop the run, or a warning",
      {{"stop", CheckpointErrors::kStop}, {"continue", CheckpointErrors::kContinue}}));
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

void add_offload_folder_option(CLI::App& app, TrainingOptions& options) {
  app.add_option("--offload-folder", options.offload_folder,
                 "Where stages that offload keep their files, on a disk of each host; else in the "
                 "system's folder for temporary files")
      ->check(CLI::ExistingDirectory);
}

void add_capture_option(CLI::App& app, TrainingOptions& options) {
  app.add_option("--capture", options.capture,
                 "Replay stages without torch's dispatcher and autograd, where that gives the same "
                 "bits")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("{on,off}")
      ->default_str("on");
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

}  // namespace

void add_train_options(CLI::App& app, TrainOptions& options) {
  const auto begin_group = [&app](const char* name) { app.option_defaults()->group(name); };
  begin_group("Plan");
  options.plan.add_to(app, /*with_file=*/true);
  app.add_option("--ranks", options.plan.ranks,
                 "Processes to start here; as many as the plan has ranks where it is not given");
  app.add_flag("--serial", options.session.serial,
               "Run all stages in this process, one after the other");
  app.add_option(
         "--reader-ranks", options.session.reader_ranks,
         "Processes beside those that train, which read and transform samples for them; the "
         "last ranks where another launcher starts them")
      ->check(arguments::not_negative())
      ->capture_default_str();
  add_offload_folder_option(app, options.session.training);
  add_capture_option(app, options.session.training);
  app.add_option("--profile", options.session.profile,
                 "Profile that the plan was made from, or is to be made from: else it is measured");
  app.add_option("--topology", options.session.topology, "Topology that goes with it")
      ->capture_default_str();
  begin_group("Steps");
  app.add_option("--steps", options.session.num_steps.emplace(100), "Steps of the whole run")
      ->check(arguments::not_negative())
      ->capture_default_str();
  app.add_option("--log-every", options.report.log_every, "Steps between printed lines")
      ->check(arguments::positive())
      ->capture_default_str();
  add_optimizer_options(app, options.session.training.optimizer);
  add_average_option(app, options.session.training);
  add_gradients_option(app, options.session.training.gradient_dtype);
  add_reader_threads_option(app, options.session.training);
  add_initial_options(app, options);
  begin_group("Run folder");
  add_run_options(app, options.session.run, options.plan.options);
  add_restarts_option(app, options.restarts);
  begin_group("Files");
  app.add_option("--metrics", options.session.metrics_file,
                 "Write a JSON line per step here; else into the run's folder");
  app.add_option("--save", options.save, "Write the trained weights to this safetensors file");
  app.add_option("--timeline", options.timeline,
                 "Write a Chrome trace of the last step to this file");
  begin_group("Checks");
  add_check_options(app, options);
}

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

}  // namespace trireme::command
