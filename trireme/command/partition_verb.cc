#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "trireme/base/files.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::command {
namespace {

struct PartitionVerbOptions {
  std::string graph_file;
  std::string profile;
  std::string topology = "topology.json";
  std::string out = "plan.json";
  std::filesystem::path front;  ///< Empty: none is made.
  PlanArguments plan;
  TrainingOptions training;
  std::vector<std::string> buffers;  ///< --buffer, for `training`.
};

Graph graph_of(const PartitionVerbOptions& options, const Context& context) {
  if (!options.graph_file.empty()) return Graph::load(options.graph_file);
  const std::int64_t microbatch = options.profile.empty()
                                      ? options.plan.microbatch()
                                      : Profile::load(options.profile).microbatch();
  return record_graph(context.workload(), microbatch, /*training=*/true, context.seed,
                      context.sizes);
}

/// The size that the profile measured is the one that is planned.
void check_microbatch(std::int64_t given, std::int64_t measured) {
  if (given == measured) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("--microbatch says {}, but the profile measured {}; profile with "
                          "--microbatch {}, or leave it out",
                          given, measured, given));
}

Decision decide(const PartitionVerbOptions& options, const Graph& graph, bool has_microbatch) {
  if (options.profile.empty()) {
    Plan plan = make_plan(graph, options.plan.options);
    return {plan, plan.show(graph)};
  }
  const Profile profile = Profile::load(options.profile, graph);
  if (has_microbatch) {
    check_microbatch(options.plan.options.batch.microbatch, profile.microbatch());
  }
  return make_plan(graph, profile, Topology::load(options.topology), options.plan.options,
                   options.training);
}

/// Writes plan_0.json and so on.
void save_front(const PartitionVerbOptions& options, const Graph& graph, const Context& context) {
  if (options.profile.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--front compares plans by what they cost; give --profile");
  }
  const Front front =
      make_front(graph, Profile::load(options.profile, graph), Topology::load(options.topology),
                 options.plan.options, options.training);
  make_folder(options.front);
  Json plans = Json::array();
  for (std::size_t i = 0; i < front.plans.size(); ++i) {
    const auto file = options.front / fmt::format("plan_{}.json", i);
    const Prediction prediction = front.plans[i].prediction().value();
    front.plans[i].save(file);
    plans.push_back({{"file", file.string()},
                     {"predicted_step_ms", prediction.step_ms},
                     {"peak_bytes", layout::largest_peak_bytes(prediction.peak_bytes)}});
  }
  print(context, {{"plans", std::move(plans)}},
        front.text + fmt::format("\nwritten to {}\n", options.front.string()));
}

}  // namespace

Body add_partition(CLI::App& app, Context& context) {
  auto options = std::make_shared<PartitionVerbOptions>();
  app.add_option("--graph", options->graph_file, "Graph file; without it the model is recorded");
  app.add_option("--profile", options->profile,
                 "Profile that `profile` wrote; without it, stages get about as many nodes each");
  app.add_option("--topology", options->topology, "Topology that `profile` wrote")
      ->capture_default_str();
  PlanOptions& wanted = options->plan.options;
  wanted.may_copy = true;
  wanted.may_idle = true;  // Ranks are not started yet.
  wanted.may_join = true;
  app.add_flag("!--no-copies", wanted.may_copy,
               "Run no cheap shared node once per consumer, which gives other bits");
  app.add_flag("!--no-reorder", wanted.may_reorder,
               "Run nodes in the recorded order, also where another one has the same bits");
  app.add_flag("!--even-replicas", wanted.may_join,
               "As many ranks for each stage, also where other numbers would be faster");
  add_objective_option(app, wanted.objective);
  add_slowdown_option(app, wanted.max_slowdown);
  add_device_memory_option(app, wanted.device_memory_bytes);
  add_tolerant_option(app, options->training.tolerant);
  add_buffer_option(app, options->buffers);
  app.add_option("--out", options->out, "Where the plan is written")->capture_default_str();
  app.add_option("--front", options->front,
                 "Folder for all plans of which none is beaten in both step and peak, in place of "
                 "one plan")
      ->type_name("FOLDER");
  options->plan.add_to(app, /*with_file=*/false);
  add_optimizer_options(app, options->training.optimizer);
  add_gradients_option(app, options->training.gradient_dtype);
  app.footer(
      "Example: trireme partition --graph train.graph.json --profile profile.json --batch 64\n"
      "The microbatch size is the profile's. Give the optimizer that will train: its state is part "
      "of the memory. Ranks of the topology that would make steps longer stay idle; --stages and "
      "--replicas ask for numbers.");
  return [options, &context, &app] {
    const Graph graph = graph_of(*options, context);
    options->training.buffers = train::parse_replica_policies(options->buffers);
    if (!options->front.empty()) {
      save_front(*options, graph, context);
      return 0;
    }
    const auto [plan, text] = decide(*options, graph, app.count("--microbatch") > 0);
    const std::string sha256 = plan.save(options->out);
    Json json = {{"file", options->out},
                 {"sha256", sha256},
                 {"graph_sha256", plan.graph_sha256()},
                 {"stages", plan.num_stages()}};
    if (const auto prediction = plan.prediction()) {
      json["predicted_step_ms"] = prediction->step_ms;
      json["lower_bound_ms"] = prediction->lower_bound_ms;
    }
    print(context, json, text + fmt::format("\nwritten to {}\n", options->out));
    return 0;
  };
}

}  // namespace trireme::command
