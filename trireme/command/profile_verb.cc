#include <fmt/format.h>

#include <optional>

#include "trireme/arguments/numbers.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/plan/profile/profile_show.h"
#include "trireme/session/planning.h"

namespace trireme::command {
namespace {

struct ProfileVerbOptions {
  session::MeasureOptions measure;
  int ranks = 1;
  std::string out = "profile.json";
  std::string topology = "topology.json";
};

/// One rank's part; `connected` is null where there is only this process.
int profile_rank(const ProfileVerbOptions& options, const Context& context,
                 const launch::ConnectedWorld* connected) {
  std::optional<collectives::World> world;
  if (connected != nullptr) world.emplace(connected->world());
  const Workload workload = train::construct(context.workload(), context.seed);
  const auto recorded =
      record_model(context, workload, graph::Mode::kTrain, options.measure.microbatch);
  const Measurement measured =
      session::measure_recorded(workload, recorded, options.measure, world ? &*world : nullptr);
  if (world && world->rank() != 0) return 0;
  const std::string sha256 = measured.profile.save(options.out);
  measured.topology.save(options.topology);
  print(context,
        {{"file", options.out},
         {"sha256", sha256},
         {"topology", options.topology},
         {"distinct_nodes", measured.profile.value().costs.size()}},
        profile::show(measured.profile.value(), recorded.graph) +
            fmt::format("\nwritten to {} and {}\n", options.out, options.topology));
  return 0;
}

}  // namespace

Body add_profile(CLI::App& app, Context& context) {
  auto options = std::make_shared<ProfileVerbOptions>();
  app.add_option("--microbatch", options->measure.microbatch, "Samples per microbatch (b)")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--ranks", options->ranks,
                 "Processes that measure at the same time: as many as will train")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_option("--out", options->out, "Where the profile is written")->capture_default_str();
  app.add_option("--topology", options->topology, "Where the topology is written")
      ->capture_default_str();
  add_device_memory_option(app, options->measure.device_memory_bytes);
  add_optimizer_options(app, options->measure.training.optimizer);
  app.footer("Example: trireme profile --ranks 2 --microbatch 8 --out profile.json");
  return [options, &context] {
    options->measure.training.seed = context.seed;
    return run_ranks(context, options->ranks, [&](const launch::ConnectedWorld* world) {
      return profile_rank(*options, context, world);
    });
  };
}

}  // namespace trireme::command
