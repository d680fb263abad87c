#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "trireme/base/exit_code.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"

namespace trireme::command {
namespace {

struct FollowVerbOptions {
  std::string run;
  PlanArguments plan;
  SessionOptions session;
};

/// This rank's part.
int follow_rank(const FollowVerbOptions& options, const Context& context, World& world) {
  SessionOptions wanted = options.session;
  wanted.plan = options.plan.given();
  wanted.callbacks.on_evaluation = [&](std::int64_t steps_done, const StepLosses& losses) {
    print_evaluation(steps_done, losses, context.json);
  };
  std::int64_t num_made = 0;
  {
    Session session(world, context.workload(), std::move(wanted));
    num_made = session.follow(options.run);
  }
  world.shutdown();
  if (world.rank() == 0) {
    print(context, {{"evaluations", num_made}},
          fmt::format("{} evaluations of {}\n", num_made, options.run));
  }
  return kDone;
}

}  // namespace

Body add_follow(CLI::App& app, Context& context) {
  auto options = std::make_shared<FollowVerbOptions>();
  app.add_option("--run", options->run,
                 "Folder of a run that trains with --evaluate-elsewhere; the options that it was "
                 "started with count here, too, but for those of its plan")
      ->required();
  app.option_defaults()->group("Plan");
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--ranks", options->plan.ranks,
                 "Processes to start here; as many as the plan has ranks where it is not given");
  app.option_defaults()->group("Training that is followed");
  add_optimizer_options(app, options->session.training.optimizer);
  add_average_option(app, options->session.training);
  add_reader_threads_option(app, options->session.training);
  app.footer(
      "Example: trireme train --model t5 --run run --ranks 4 --evaluate-elsewhere "
      "--evaluate-every 100 --keep-best 1\n"
      "and on other cores, or another host that sees the folder: trireme follow --run run");
  return [options, &context] {
    options->plan.check();
    SessionOptions& wanted = options->session;
    wanted.model = context.model_name();
    wanted.batch_sizes = context.sizes;
    wanted.planning = options->plan.options;
    wanted.training.seed = context.seed;
    wanted.handles_signals = true;
    wanted.first_step_check = false;  // the run has made it
    return run_in_world(context, options->plan.num_ranks(),
                        [&](World& world) { return follow_rank(*options, context, world); });
  };
}

}  // namespace trireme::command
