#include "trireme/arguments/numbers.h"
#include "trireme/base/log.h"
#include "trireme/command/train.h"
#include "trireme/command/training_options.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::command {
namespace {

void add_run_options(CLI::App& app, RunOptions& run) {
  CLI::Option* folder =
      app.add_option("--run", run.folder,
                     "Keep the run in this folder: plan, metrics, checkpoints. Without --plan and "
                     "--cut-at, the ranks measure and the best plan is taken");
  app.add_flag("--resume", run.resume,
               "Go on from the newest checkpoint of the folder, if it has one; --ranks may differ")
      ->needs(folder);
  std::vector<CLI::Option*> own;
  own.push_back(app.add_option("--checkpoint-every", run.checkpoint_every,
                               "Steps between checkpoints; 0 for one at the end")
                    ->check(arguments::not_negative())
                    ->capture_default_str());
  own.push_back(app.add_option("--keep-last", run.keep_last, "Checkpoints that stay")
                    ->check(arguments::positive())
                    ->capture_default_str());
  own.push_back(
      app.add_option(
             "--evaluate-every", run.evaluate_every,
             "Steps between evaluations; 0 for one before the first step and one at the end")
          ->check(arguments::not_negative())
          ->capture_default_str());
  const std::vector<CLI::Option*> for_planning = {
      app.add_option("--optimize", run.objective, "speed: least step time; memory: least peak")
          ->check(CLI::IsMember({"speed", "memory"}))
          ->capture_default_str(),
      add_slowdown_option(app, run.max_slowdown),
      app.add_flag(
          "--copies", run.may_copy,
          "Let the plan run cheap shared nodes once per consumer: other bits, which the run "
          "then keeps on any number of ranks"),
      add_device_memory_option(app, run.device_memory_bytes)};
  for (CLI::Option* option : for_planning) {
    option->excludes(app.get_option("--plan"))->excludes(app.get_option("--cut-at"));
    own.push_back(option);
  }
  for (CLI::Option* option : own) option->needs(folder);
}

void add_check_options(CLI::App& app, TrainOptions& options) {
  CLI::Option* steps = app.add_option("--drift-check-steps", options.session.drift_check_steps,
                                      "Steps at which the model is recorded again and compared")
                           ->delimiter(',')
                           ->check(arguments::not_negative())
                           ->capture_default_str();
  app.add_flag_callback(
         "--no-drift-check", [&options] { options.session.drift_check_steps.clear(); },
         "Never record the model again")
      ->excludes(steps);
  app.add_flag("--no-first-step-check", options.no_first_step_check,
               "Train without comparing, before the first step, a small step of the plan's stages "
               "with the model's own");
  add_tolerant_option(app, options.session.tolerant);
  add_buffer_option(app, options.buffers);
  app.add_flag("--allow-nonfinite", options.session.allow_nonfinite,
               "Go on where a loss or a gradient is NaN or infinite; else the run ends there");
}

/// One rank is a world too.
int train_alone(const TrainOptions& options, const Context& context) {
  const auto endpoints = transport::make_sim_world(1);
  const collectives::World world{*endpoints[0],
                                 {.deadline = std::chrono::seconds(context.timeout_s),
                                  .logger = Logger(context.environment.log_level, "rank 0")}};
  return train_rank(options, context, world, [] {});
}

}  // namespace

Body add_train(CLI::App& app, Context& context) {
  auto options = std::make_shared<TrainOptions>();
  options->report.num_steps = 100;
  const auto begin_group = [&app](const char* name) { app.option_defaults()->group(name); };
  begin_group("Plan");
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--ranks", options->plan.ranks,
                 "Processes to start here; as many as the plan has ranks where it is not given");
  app.add_flag("--serial", options->serial, "Run all stages in this process, one after the other");
  app.add_option("--profile", options->profile,
                 "Profile that the plan was made from, or is to be made from: else it is measured");
  app.add_option("--topology", options->topology, "Topology that goes with it")
      ->capture_default_str();
  begin_group("Steps");
  app.add_option("--steps", options->report.num_steps, "Steps of the whole run")
      ->check(arguments::not_negative())
      ->capture_default_str();
  app.add_option("--log-every", options->report.log_every, "Steps between printed lines")
      ->check(arguments::positive())
      ->capture_default_str();
  add_optimizer_options(app, options->session.optimizer);
  begin_group("Run folder");
  add_run_options(app, options->run);
  begin_group("Files");
  app.add_option("--metrics", options->report.metrics_file,
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
    options->session.seed = context.seed;
    options->run.given = given_options(app);
    options->session.buffers = train::parse_replica_policies(options->buffers);
    options->report.json = context.json;
    if (!context.environment.ranks) check_before_start(*options, context);
    if (options->serial) return train_serially(*options, context);
    return run_ranks(context, options->plan.num_ranks(), [&](launch::ConnectedWorld* connected) {
      if (connected == nullptr) return train_alone(*options, context);
      const collectives::World world = connected->world();
      return train_rank(*options, context, world, [connected] { connected->shutdown(); });
    });
  };
}

}  // namespace trireme::command
