#include <memory>

#include "trireme/base/files.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"

namespace trireme::command {
namespace {

struct SimulateVerbOptions {
  StepFiles files;
  std::string timeline;
  TrainingOptions training;
};

int simulate_plan(const SimulateVerbOptions& options, const Context& context) {
  const Graph graph = Graph::load(options.files.graph);
  SimulatedStep step = simulate_step(Plan::load(options.files.plan, graph), graph,
                                     Profile::load(options.files.profile, graph),
                                     Topology::load(options.files.topology), options.training);
  if (!options.timeline.empty()) {
    write_file_atomically(options.timeline, step.timeline);
    step.text += "timeline written to " + options.timeline + "\n";
  }
  const Json json = {{"step_ms", step.step_ms},
                     {"lower_bound_ms", step.lower_bound_ms},
                     {"peak_bytes", step.peak_bytes},
                     {"busy_ms", step.busy_ms}};
  print(context, json, step.text);
  return 0;
}

}  // namespace

Body add_simulate(CLI::App& app, Context& context) {
  auto options = std::make_shared<SimulateVerbOptions>();
  options->files.add_to(app);
  app.add_option("--timeline", options->timeline, "Write a Chrome trace of the step here");
  add_optimizer_options(app, options->training.optimizer);
  add_gradients_option(app, options->training.gradient_dtype);
  app.footer("Example: trireme simulate --plan plan.json --graph train.graph.json");
  return [options, &context] { return simulate_plan(*options, context); };
}

}  // namespace trireme::command
