#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/command/forecasts.h"
#include "trireme/command/training_options.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct.h"
#include "trireme/plan/graph/file.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/layout/show.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/topology/json.h"

namespace trireme::command {
namespace {

struct Options {
  std::string graph_file;
  std::string profile;
  std::string topology = "topology.json";
  std::string objective = "speed";
  std::string out = "plan.json";
  std::int64_t device_memory_bytes = 0;
  PlanOptions plan;
  train::OptimizerOptions optimizer;
};

graph::Graph graph_of(const Options& options, const Context& context) {
  if (!options.graph_file.empty()) return graph::load(options.graph_file);
  const Workload workload = train::construct(context.workload(), context.seed);
  const train::BatchReader reader(workload.training, workload.model);
  return record::record(workload.model, reader.maker(), graph::Mode::kTrain).graph;
}

/// A plan and what is said about it.
struct Decision {
  layout::Plan plan;
  std::string text;
};

Decision decide_by_profile(const graph::Graph& graph, const Options& options) {
  const profile::Profile profile = profile::load(options.profile);
  const topology::Topology topology = topology::load(options.topology);
  if (!options.plan.copies.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--copy is for plans by hand; with a profile, copies are chosen");
  }
  partition::PartitionOptions wanted{.batch = options.plan.batch,
                                     .replicas = options.plan.replicas,
                                     .objective = options.objective == "memory"
                                                      ? partition::Objective::kMemory
                                                      : partition::Objective::kSpeed,
                                     .stages = options.plan.stages,
                                     .schedule = options.plan.schedule,
                                     .device_memory_bytes = options.device_memory_bytes};
  wanted.batch.microbatch = profile.microbatch;
  wanted.forecast = forecast_options(options.optimizer);
  for (const std::string& cut : options.plan.cuts) wanted.cuts.push_back(node_position(graph, cut));
  Decision decision{partition::partition(graph, profile, topology, wanted), ""};
  const graph::Graph planned = layout::planned_graph(graph, decision.plan);
  decision.text =
      partition::explain(planned, decision.plan,
                         forecast(planned, decision.plan, profile, topology, options.optimizer));
  return decision;
}

}  // namespace

Body add_partition(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  app.add_option("--graph", options->graph_file, "Graph file; without it the model is recorded");
  app.add_option("--profile", options->profile,
                 "Profile that `profile` wrote; without it, stages get about as many nodes each");
  app.add_option("--topology", options->topology, "Topology that `profile` wrote")
      ->capture_default_str();
  app.add_option("--optimize", options->objective, "speed: least step time; memory: least peak")
      ->check(CLI::IsMember({"speed", "memory"}))
      ->capture_default_str();
  add_device_memory_option(app, options->device_memory_bytes);
  app.add_option("--out", options->out, "Where the plan is written")->capture_default_str();
  options->plan.add_to(app, /*with_file=*/false);
  add_optimizer_options(app, options->optimizer);
  app.footer(
      "Example: trireme partition --graph train.graph.json --profile profile.json --batch 64\n"
      "The microbatch size is the profile's. Give the optimizer that will train: its state is part "
      "of the memory.");
  return [options, &context] {
    const graph::Graph graph = graph_of(*options, context);
    Decision decision;
    if (!options->profile.empty()) {
      decision = decide_by_profile(graph, *options);
    } else {
      decision.plan = options->plan.plan_for(graph);
    }
    const layout::Plan& plan = decision.plan;
    const std::string sha256 = layout::save(plan, options->out);
    Json json = {{"file", options->out},
                 {"sha256", sha256},
                 {"graph_sha256", plan.graph_sha256},
                 {"stages", plan.stages.size()}};
    if (plan.prediction) {
      json["predicted_step_ms"] = plan.prediction->step_ms;
      json["lower_bound_ms"] = plan.prediction->lower_bound_ms;
    }
    const std::string text = decision.text.empty()
                                 ? layout::show(plan, layout::planned_graph(graph, plan))
                                 : decision.text;
    print(context, json, text + fmt::format("\nwritten to {}\n", options->out));
    return 0;
  };
}

}  // namespace trireme::command
