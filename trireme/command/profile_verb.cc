#include <fmt/format.h>

#include "trireme/arguments/numbers.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/topology/known_before.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::command {
namespace {

struct ProfileVerbOptions {
  MeasureOptions measure;
  int ranks = 1;
  std::string out = "profile.json";
  std::string topology = "topology.json";
};

/// One rank's part.
int profile_rank(const ProfileVerbOptions& options, const Context& context, World& world) {
  topology::Topology before;
  if (world.rank() == 0) before = topology::load_if_any(options.topology);
  const auto [graph, profile, topology] = measure_model(world, context.workload(), options.measure);
  if (world.rank() != 0) return 0;
  const std::string sha256 = profile.save(options.out);
  topology::save(topology::with_links_and_parts_of(before, topology.value()), options.topology);
  print(
      context,
      {{"file", options.out},
       {"sha256", sha256},
       {"topology", options.topology},
       {"distinct_nodes", profile.num_distinct_nodes()}},
      profile.show(graph) + fmt::format("\nwritten to {} and {}\n", options.out, options.topology));
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
  add_threads_option(app, options->measure.threads);
  app.add_option("--out", options->out, "Where the profile is written")->capture_default_str();
  app.add_option("--topology", options->topology,
                 "Where the topology is written; what `topology detect` found out there stays")
      ->capture_default_str();
  app.add_option("--offload-folder", options->measure.training.offload_folder,
                 "Measure files in this folder too, for plans with --offload")
      ->check(CLI::ExistingDirectory);
  add_device_memory_option(app, options->measure.device_memory_bytes);
  add_optimizer_options(app, options->measure.training.optimizer);
  app.footer("Example: trireme profile --ranks 2 --microbatch 8 --out profile.json");
  return [options, &context] {
    options->measure.training.seed = context.seed;
    options->measure.files = !options->measure.training.offload_folder.empty();
    options->measure.batch_sizes = context.sizes;
    return run_in_world(context, options->ranks,
                        [&](World& world) { return profile_rank(*options, context, world); });
  };
}

}  // namespace trireme::command
