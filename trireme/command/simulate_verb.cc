#include <fmt/format.h>

#include <memory>

#include "trireme/arguments/numbers.h"
#include "trireme/base/files.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/plan/simulate/stragglers.h"
#include "trireme/session/planning.h"

namespace trireme::command {
namespace {

struct SimulateVerbOptions {
  StepFiles files;
  std::string timeline;
  TrainingOptions training;
  simulate::Stragglers stragglers{.slow_factor = 2};

  bool has_stragglers() const { return stragglers.spread > 0 || stragglers.slow_part > 0; }
};

void add_spread(const simulate::StepSpread& spread, SimulatedStep& step, Json& json) {
  const double mean = spread.mean_us() / 1e3, half = spread.quantile_us(0.5) / 1e3,
               most = spread.quantile_us(0.95) / 1e3, slowest = spread.sorted_us.back() / 1e3;
  step.text += fmt::format(
      "\n{} steps whose times differ at random: {:.3f} ms in the mean; half take at most {:.3f} "
      "ms, "
      "95 of 100 at most {:.3f} ms, the slowest {:.3f} ms\n",
      spread.sorted_us.size(), mean, half, most, slowest);
  json["random_steps"] = {
      {"mean_ms", mean}, {"median_ms", half}, {"p95_ms", most}, {"slowest_ms", slowest}};
}

int simulate_plan(SimulateVerbOptions options, const Context& context) {
  const Graph graph = Graph::load(options.files.graph);
  const Plan plan = Plan::load(options.files.plan, graph);
  const session::MeasuredCosts costs{Profile::load(options.files.profile, graph),
                                     Topology::load(options.files.topology)};
  SimulatedStep step = simulate_step(plan, graph, costs.profile, costs.topology, options.training);
  if (!options.timeline.empty()) {
    write_file_atomically(options.timeline, step.timeline);
    step.text += "timeline written to " + options.timeline + "\n";
  }
  Json json = {{"step_ms", step.step_ms},
               {"lower_bound_ms", step.lower_bound_ms},
               {"peak_bytes", step.peak_bytes},
               {"busy_ms", step.busy_ms}};
  if (options.has_stragglers()) {
    options.stragglers.seed = context.seed;
    add_spread(session::spread_of_steps(graph.value(), plan.value(), costs, options.training,
                                        options.stragglers),
               step, json);
  }
  print(context, json, step.text);
  return 0;
}

void add_stragglers(CLI::App& app, simulate::Stragglers& stragglers) {
  app.add_option("--spread", stragglers.spread,
                 "Play steps in which each time differs at random, by a factor whose logarithm has "
                 "this standard deviation: 0.1 for about 10 %")
      ->check(CLI::Range(0.0, 10.0));
  app.add_option("--slow-part", stragglers.slow_part,
                 "And of the ranks so many are slow in a step, 0.01 for one in a hundred")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--slow-factor", stragglers.slow_factor, "By how much these are slower")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--random-steps", stragglers.num_steps, "Steps that are played so")
      ->check(arguments::positive())
      ->capture_default_str();
}

}  // namespace

Body add_simulate(CLI::App& app, Context& context) {
  auto options = std::make_shared<SimulateVerbOptions>();
  options->files.add_to(app);
  app.add_option("--timeline", options->timeline, "Write a Chrome trace of the step here");
  add_stragglers(app, options->stragglers);
  add_optimizer_options(app, options->training.optimizer);
  add_gradients_option(app, options->training.gradient_dtype);
  app.footer("Example: trireme simulate --plan plan.json --graph train.graph.json");
  return [options, &context] { return simulate_plan(*options, context); };
}

}  // namespace trireme::command
