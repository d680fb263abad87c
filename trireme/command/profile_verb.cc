#include <fmt/format.h>

#include "trireme/command/training_options.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/measure_profile.h"
#include "trireme/engine/train/construct.h"
#include "trireme/engine/train/step_reader.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/profile/show.h"
#include "trireme/plan/topology/json.h"

namespace trireme::command {
namespace {

struct Options {
  std::int64_t microbatch = 8;
  int ranks = 1;
  std::string out = "profile.json";
  std::string topology = "topology.json";
  std::int64_t device_memory_bytes = 0;
  train::OptimizerOptions optimizer;
};

/// The optimizer's update as the measurement calls it.
measure::UpdateFunction update_of(const train::OptimizerOptions& options) {
  const std::shared_ptr<optim::Optimizer> optimizer = train::make_optimizer(options);
  return [optimizer, rate = options.learning_rate](const at::Tensor& value,
                                                   const at::Tensor& gradient) {
    static const std::string name = "measured";
    optimizer->update({name, value, gradient}, rate);
  };
}

/// What ranks must have in common: their measurements become one profile.
std::string shared_text(const Options& options, const Context& context) {
  return train::to_text({.seed = context.seed, .optimizer = options.optimizer}) +
         fmt::format("microbatch {}\ndevice memory {}\n", options.microbatch,
                     options.device_memory_bytes);
}

/// One rank's part; `world` is null where there is only this process.
int profile_rank(const Options& options, const Context& context, const ConnectedWorld* connected) {
  const Workload workload = train::construct(context.workload(), context.seed);
  const train::StepReader reader(
      workload, {.global_batch = options.microbatch, .microbatch = options.microbatch, .lanes = 1},
      context.seed);
  const auto recording = record::record(workload.model, reader.maker(), graph::Mode::kTrain);
  const Batch batch = reader.read(0, 0);
  std::unique_ptr<collectives::Group> group;
  measure::BusyRanks ranks;
  if (connected != nullptr) {
    train::require_same(connected->world(), graph::graph_sha256(recording.graph), "model");
    train::require_same(connected->world(), shared_text(options, context),
                        "options of the profile");
    group = train::make_world_group(connected->world(), "profile");
    ranks = measure::BusyRanks(*group, connected->world().watch);
  }
  const profile::Profile profile =
      measure::measure_profile({.recording = recording, .batch = batch, .ranks = ranks},
                               connected == nullptr ? nullptr : &connected->world().endpoint,
                               {.update = update_of(options.optimizer)});
  const topology::Topology topology =
      measure::detect_topology(ranks, {.device_memory_bytes = options.device_memory_bytes});
  if (!ranks.is_first()) return 0;
  const std::string sha256 = profile::save(profile, options.out);
  topology::save(topology, options.topology);
  print(context,
        {{"file", options.out},
         {"sha256", sha256},
         {"topology", options.topology},
         {"distinct_nodes", profile.costs.size()}},
        profile::show(profile, recording.graph) +
            fmt::format("\nwritten to {} and {}\n", options.out, options.topology));
  return 0;
}

}  // namespace

Body add_profile(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  app.add_option("--microbatch", options->microbatch, "Samples per microbatch (b)")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ranks", options->ranks,
                 "Processes that measure at the same time: as many as will train")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--out", options->out, "Where the profile is written")->capture_default_str();
  app.add_option("--topology", options->topology, "Where the topology is written")
      ->capture_default_str();
  add_device_memory_option(app, options->device_memory_bytes);
  add_optimizer_options(app, options->optimizer);
  app.footer("Example: trireme profile --ranks 2 --microbatch 8 --out profile.json");
  return [options, &context] {
    return run_ranks(context, options->ranks, [&](const ConnectedWorld* world) {
      return profile_rank(*options, context, world);
    });
  };
}

}  // namespace trireme::command
