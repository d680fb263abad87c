#include <fmt/format.h>

#include <utility>

#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/topology/known_before.h"
#include "trireme/plan/topology/topology_json.h"
#include "trireme/session/detected_topology.h"

namespace trireme::command {
namespace {

struct TopologyVerbOptions {
  std::string action;
  int ranks = 1;
  std::string out = "topology.json";
  measure::DetectOptions detect;
};

/// One rank's part.
int detect_rank(const TopologyVerbOptions& options, const Context& context, World& world) {
  topology::Topology found = session::detected_topology(world, options.detect);
  if (world.rank() != 0) return 0;
  found =
      topology::with_speeds_and_own_links_of(topology::load_if_any(options.out), std::move(found));
  const std::string sha256 = topology::save(found, options.out);
  print(context,
        {{"file", options.out}, {"sha256", sha256}, {"topology", topology::to_json(found)}},
        topology::show(found) + fmt::format("\nwritten to {}\n", options.out));
  return 0;
}

}  // namespace

Body add_topology(CLI::App& app, Context& context) {
  auto options = std::make_shared<TopologyVerbOptions>();
  app.add_option("action", options->action, "detect: all ranks together find out where they are")
      ->required()
      ->check(CLI::IsMember({"detect"}))
      ->option_text("detect");
  app.add_option("--ranks", options->ranks, "Processes: as many as will train")
      ->check(arguments::positive())
      ->capture_default_str();
  add_threads_option(app, options->detect.threads);
  add_device_memory_option(app, options->detect.device_memory_bytes);
  app.add_option("--out", options->out, "Where the topology is written")->capture_default_str();
  app.footer(
      "Example: trireme topology detect --ranks 2 --out topology.json\n"
      "Between hosts it takes about a second: all of them send at once, which says what their "
      "network cards carry. Speeds of ranks and links that the file has stay, but those of the "
      "network cards.");
  return [options, &context] {
    return run_in_world(context, options->ranks,
                        [&](World& world) { return detect_rank(*options, context, world); });
  };
}

}  // namespace trireme::command
