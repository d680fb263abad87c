#include <fmt/format.h>

#include "trireme/command/forecasts.h"
#include "trireme/command/training_options.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/graph/file.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/grid.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/timeline/draw.h"
#include "trireme/plan/timeline/json.h"
#include "trireme/plan/timeline/usage.h"
#include "trireme/plan/topology/json.h"

namespace trireme::command {
namespace {

struct SimulateVerbOptions {
  std::string plan = "plan.json";
  std::string graph = "train.graph.json";
  std::string profile = "profile.json";
  std::string topology = "topology.json";
  std::string timeline;
  train::OptimizerOptions optimizer;
};

constexpr int kDrawnColumns = 100;

/// The order of the actions of a replica's ranks, in units of time.
std::string order_text(const layout::Plan& plan) {
  const auto num_microbatches =
      static_cast<int>(plan.batch.num_microbatches() / layout::train_role(plan).mesh.data);
  return "order of microbatches (" + plan.schedule.name + ")\n" +
         schedule::grid(schedule::make_schedule(plan.schedule, static_cast<int>(plan.stages.size()),
                                                num_microbatches),
                        {.max_columns = kDrawnColumns});
}

int simulate_plan(const SimulateVerbOptions& options, const Context& context) {
  const graph::Graph recorded = graph::load(options.graph);
  const layout::Plan plan = layout::load(options.plan, recorded);
  const graph::Graph planned = layout::planned_graph(recorded, plan);
  const profile::Profile profile = profile::load(options.profile, recorded);
  const simulate::Forecast forecast = command::forecast(
      planned, plan, profile, topology::load(options.topology), options.optimizer);
  const timeline::Timeline timeline =
      simulate::predicted_timeline(forecast.program, forecast.simulation);
  std::string text = partition::explain(planned, plan, forecast) + "\n" + order_text(plan) + "\n" +
                     timeline::draw(timeline, kDrawnColumns) + "\n" +
                     timeline::show_usage(timeline);
  if (!options.timeline.empty()) {
    timeline::save(std::span(&timeline, 1), options.timeline);
    text += "timeline written to " + options.timeline + "\n";
  }
  Json json = {{"step_ms", forecast.simulation.step_us / 1e3},
               {"lower_bound_ms", forecast.plan_bound_us / 1e3},
               {"peak_bytes", forecast.peak_bytes()}};
  for (const double busy : forecast.simulation.busy_us) json["busy_ms"].push_back(busy / 1e3);
  print(context, json, text);
  return 0;
}

}  // namespace

Body add_simulate(CLI::App& app, Context& context) {
  auto options = std::make_shared<SimulateVerbOptions>();
  app.add_option("--plan", options->plan, "Plan file")->capture_default_str();
  app.add_option("--graph", options->graph, "Graph that the plan is of")->capture_default_str();
  app.add_option("--profile", options->profile, "Profile of the graph")->capture_default_str();
  app.add_option("--topology", options->topology, "Where ranks run")->capture_default_str();
  app.add_option("--timeline", options->timeline, "Write a Chrome trace of the step here");
  add_optimizer_options(app, options->optimizer);
  app.footer("Example: trireme simulate --plan plan.json --graph train.graph.json");
  return [options, &context] { return simulate_plan(*options, context); };
}

}  // namespace trireme::command
