#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "trireme/base/document.h"
#include "trireme/command/run_files.h"
#include "trireme/command/show_files.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_show.h"
#include "trireme/plan/layout/layout_show.h"
#include "trireme/plan/layout/parameter_map_json.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/profile/profile_show.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedule_csv.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_program_show.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/schedule/timeline_json.h"
#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/sharding_json.h"
#include "trireme/plan/sharding/sharding_show.h"
#include "trireme/plan/topology/topology.h"
#include "trireme/plan/topology/topology_json.h"
#include "trireme/session/best_checkpoints.h"
#include "trireme/session/run_document.h"
#include "trireme/wire/collectives/tuner.h"

namespace trireme::command {
namespace {

constexpr int kColumns = 100;

struct ShowVerbOptions {
  std::string file;
  std::string graph;  ///< Empty: not given.
  std::string order;  ///< File for a plan's or schedule's order; empty: not wanted.
};

void save_order(const ShowVerbOptions& options, const layout::Plan& plan) {
  if (!options.order.empty()) schedule::save(schedule::schedule_of(plan), options.order);
}

Shown show_graph(const ShowVerbOptions& options) {
  const graph::Graph graph = graph::load(options.file);
  return {graph::to_json(graph), graph::show(graph)};
}

Shown show_plan(const ShowVerbOptions& options) {
  if (options.graph.empty()) {
    const layout::Plan plan = layout::load(options.file);
    save_order(options, plan);
    return {layout::to_json(plan), layout::show(plan)};
  }
  const graph::Graph recorded = graph::load(options.graph);
  const layout::Plan plan = layout::load(options.file, recorded);
  save_order(options, plan);
  return {layout::to_json(plan), layout::show(plan, layout::planned_graph(recorded, plan))};
}

Shown show_profile(const ShowVerbOptions& options) {
  const profile::Profile profile = profile::load(options.file);
  if (options.graph.empty()) return {profile::to_json(profile), profile::show(profile)};
  const graph::Graph recorded = graph::load(options.graph);
  profile::check(profile, recorded);
  return {profile::to_json(profile), profile::show(profile, recorded)};
}

Shown show_topology(const ShowVerbOptions& options) {
  const topology::Topology topology = topology::load(options.file);
  topology::check(topology);
  return {topology::to_json(topology), topology::show(topology)};
}

Shown show_map(const ShowVerbOptions& options) {
  const layout::ParameterMap map = layout::load_parameter_map(options.file);
  return {layout::to_json(map), layout::show(map)};
}

Shown show_sharding(const ShowVerbOptions& options) {
  const sharding::Sharding sharding = sharding::load_sharding(options.file);
  if (options.graph.empty()) return {sharding::to_json(sharding), sharding::show(sharding)};
  const graph::Graph graph = graph::load(options.graph);
  sharding::check(sharding, graph);
  return {sharding::to_json(sharding), sharding::show(sharding, graph)};
}

Shown show_schedule(const ShowVerbOptions& options) {
  const schedule::Schedule schedule = schedule::load_schedule(options.file);
  schedule::check(schedule);
  if (!options.order.empty()) schedule::save(schedule, options.order);
  return {schedule::to_json(schedule), schedule::grid(schedule, {.max_columns = kColumns})};
}

Shown show_step_program(const ShowVerbOptions& options) {
  const schedule::StepProgram program = schedule::load_step_program(options.file);
  return {schedule::to_json(program), schedule::show(program)};
}

Shown show_timeline(const ShowVerbOptions& options) {
  const std::vector<schedule::Timeline> timelines = schedule::load_timelines(options.file);
  std::string text;
  for (const schedule::Timeline& timeline : timelines) {
    text += (text.empty() ? "" : "\n") + schedule::show_usage(timeline) +
            schedule::draw(timeline, kColumns);
  }
  return {schedule::to_json(timelines), text};
}

Shown show_costs(const ShowVerbOptions& options) {
  const collectives::Costs costs = collectives::load_costs(options.file);
  return {collectives::to_json(costs), collectives::to_text(costs)};
}

Shown show_run(const ShowVerbOptions& options) {
  const session::RunDocument run = session::load_run(options.file);
  return {to_json(run), show(run)};
}

Shown show_best(const ShowVerbOptions& options) {
  const session::BestDocument best = session::load_best(options.file);
  return {to_json(best), show(best)};
}

Shown show_checkpoint(const ShowVerbOptions& options) {
  const checkpoint::Index index = checkpoint::load(options.file);
  return {checkpoint::to_json(index), checkpoint::show(index)};
}

/// A form of file, and what prints it.
struct Form {
  std::string_view format;
  Shown (*show)(const ShowVerbOptions& options);
  bool has_graph = false;  ///< Whether --graph adds to it.
  bool has_order = false;  ///< Whether --order has something to write.
};

constexpr std::array<Form, 13> kForms = {{
    {graph::kGraphDocument.format, show_graph},
    {profile::kProfileDocument.format, show_profile, true},
    {topology::kTopologyDocument.format, show_topology},
    {layout::kPlanDocument.format, show_plan, true, true},
    {layout::kParameterMapDocument.format, show_map},
    {sharding::kShardingDocument.format, show_sharding, true},
    {schedule::kScheduleDocument.format, show_schedule, false, true},
    {schedule::kStepProgramDocument.format, show_step_program},
    {schedule::kTimelineDocument.format, show_timeline},
    {checkpoint::kIndexDocument.format, show_checkpoint},
    {collectives::kCostsDocument.format, show_costs},
    {session::kRunDocument.format, show_run},
    {session::kBestDocument.format, show_best},
}};

/// What a recipe of this program shows of a form of its own; nothing where none knows it.
std::optional<Shown> show_recipe_document(const Context& context, const std::string& format,
                                          const std::string& file) {
  for (const auto& [name, recipe] : context.recipes) {
    const auto found = recipe.documents.find(format);
    if (found == recipe.documents.end()) continue;
    const ShownDocument shown = found->second(file);
    return Shown{Json::parse(shown.json), shown.text};
  }
  return std::nullopt;
}

Shown show_document(const ShowVerbOptions& options, const Context& context) {
  const std::string format = schedule::is_csv(options.file)
                                 ? std::string(schedule::kScheduleDocument.format)
                                 : document_format(options.file);
  const auto* form =
      std::ranges::find_if(kForms, [&](const Form& one) { return one.format == format; });
  const bool is_ours = form != kForms.end();
  if (!options.graph.empty() && !(is_ours && form->has_graph)) {
    throw Error(ErrorKind::kInvalidArgument, "'" + options.file + "' is a " + format +
                                                 ", to which --graph adds nothing; leave it out");
  }
  if (!options.order.empty() && !(is_ours && form->has_order)) {
    throw Error(ErrorKind::kInvalidArgument, "'" + options.file + "' is a " + format +
                                                 ", and --order is for plans and schedules");
  }
  if (is_ours) return form->show(options);
  if (auto shown = show_recipe_document(context, format, options.file)) return *std::move(shown);
  std::string known;
  for (const Form& one : kForms) known += (known.empty() ? "" : ", ") + std::string(one.format);
  throw Error(ErrorKind::kInvalidArgument, "'" + options.file + "' is a " + format +
                                               ", which this build cannot show; it shows " + known);
}

/// What has no field `format`; null for documents.
Shown (*shows_file(const std::string& file))(const std::string&) {
  if (file.ends_with(".jsonl")) return show_metrics;
  return file.ends_with(".safetensors") ? show_tensors : nullptr;
}

int show(ShowVerbOptions options, const Context& context) {
  options.file = document_at(options.file).string();
  if (const auto show_file = shows_file(options.file)) {
    const Shown shown = show_file(options.file);
    print(context, shown.json, shown.text);
    return 0;
  }
  const Shown shown = show_document(options, context);
  print(context, shown.json, shown.text);
  return 0;
}

}  // namespace

Body add_show(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShowVerbOptions>();
  app.add_option(
         "file", options->file,
         "Any of Trireme's JSON files, a schedule's table (.csv), metrics.jsonl, safetensors; or a "
         "run's folder, one of its checkpoints, `latest`")
      ->required();
  app.add_option("--graph", options->graph,
                 "Graph of the plan, profile or sharding, to name what is in it");
  app.add_option("--order", options->order,
                 "Write which rank runs what in which order here: a table for spreadsheets and "
                 "torch.distributed.pipelining where the name ends with .csv, else JSON");
  app.footer("Example: trireme show plan.json --graph run/train.graph.json");
  return [options, &context] { return show(*options, context); };
}

}  // namespace trireme::command
