#include <filesystem>
#include <memory>

#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/session/run_document.h"
#include "trireme/session/run_folder.h"

namespace trireme::command {
namespace {

struct ExplainVerbOptions {
  std::filesystem::path run;  ///< Empty: the files below.
  StepFiles files;
  std::string timeline;
  TrainingOptions training;
};

/// A file of the run, where it wrote one: it did not measure where costs were given, which its options name.
void take(const std::filesystem::path& file, std::string& taken) {
  if (std::filesystem::exists(file)) taken = file.string();
}

/// The files of a run's last start that ended, in place of the others.
void take_files_of_run(ExplainVerbOptions& options) {
  const session::RunFolder folder(options.run);
  const session::Segment* last = nullptr;
  const session::RunDocument run = session::load_run(folder.document());
  for (const session::Segment& segment : run.segments) {
    if (!segment.timeline.empty()) last = &segment;
  }
  if (last == nullptr) {
    throw Error(ErrorKind::kInvalidArgument,
                options.run.string() +
                    ": no start of this run wrote a timeline, which it does when it ends");
  }
  options.files.plan = folder.path(last->plan);
  options.timeline = folder.path(last->timeline);
  options.files.graph = folder.path("graph.json");
  take(folder.path(session::RunFolder::name_for("profile", last->ranks)), options.files.profile);
  take(folder.path(session::RunFolder::name_for("topology", last->ranks)), options.files.topology);
}

Json to_json(const ChangedStep& step) {
  return {{"change", step.change},
          {"step_ms", step.step_ms},
          {"us_per_sample", step.us_per_sample},
          {"peak_bytes", step.peak_bytes}};
}

int explain_plan(ExplainVerbOptions options, const Context& context) {
  if (!options.run.empty()) take_files_of_run(options);
  const Graph graph = Graph::load(options.files.graph);
  const ChangedSteps steps = explain_step(
      Plan::load(options.files.plan, graph), graph, Profile::load(options.files.profile, graph),
      Topology::load(options.files.topology), options.training, options.timeline);
  Json changes = Json::array();
  for (const ChangedStep& step : steps.changes) changes.push_back(to_json(step));
  print(context, {{"now", to_json(steps.now)}, {"changes", std::move(changes)}}, steps.text);
  return 0;
}

}  // namespace

Body add_explain(CLI::App& app, Context& context) {
  auto options = std::make_shared<ExplainVerbOptions>();
  app.add_option(
         "--run,run", options->run,
         "A run's folder: the step that it measured last, with its plan, costs and optimizer")
      ->type_name("RUN");
  options->files.add_to(app);
  app.add_option("--timeline", options->timeline,
                 "Timeline of a run: actions take what they took in its measured step");
  add_optimizer_options(app, options->training.optimizer);
  add_gradients_option(app, options->training.gradient_dtype);
  app.footer(
      "Example: trireme explain --plan plan.json --graph train.graph.json\n"
      "         trireme explain run\n"
      "The step is played again with one thing changed: links twice as fast, another schedule, a "
      "host more.");
  return [options, &context] { return explain_plan(*options, context); };
}

}  // namespace trireme::command
