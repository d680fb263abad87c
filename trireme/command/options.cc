#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <limits>
#include <utility>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/words.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"
#include "trireme/launch/run_ranks.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/session/planning.h"
#include "trireme/session/world_maker.h"

namespace trireme::command {

const std::pair<const std::string, Recipe>& Context::recipe() const {
  if (model.empty() && recipes.size() == 1) return *recipes.begin();
  const auto found = recipes.find(model);
  if (found != recipes.end()) return *found;
  std::string names;
  for (const auto& [name, recipe] : recipes) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::kInvalidArgument,
              names.empty()
                  ? "this program has no model; a program of your own gets the verbs from "
                    "trireme::run_command_line, see examples/01_own_model"
              : model.empty() ? "--model is missing; it is one of: " + names
                              : fmt::format("--model '{}' is none of: {}", model, names));
}

namespace {

/// Of NAME=STAGE.
std::pair<std::string, int> stage_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  int stage = -1;
  if (equals != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, stage);
    if (error != std::errc() || rest != end) stage = -1;
  }
  if (stage >= 0 && equals > 0) return {text.substr(0, equals), stage};
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("--stage-of '{}': expected NAME=STAGE, as decoder.3=1", text));
}

CLI::Option* add_stage_of_option(CLI::App& app, std::map<std::string, int>& stages) {
  return app
      .add_option_function<std::vector<std::string>>(
          "--stage-of",
          [&stages](const std::vector<std::string>& texts) {
            stages.clear();
            for (const std::string& text : texts) {
              const auto [name, stage] = stage_of(text);
              if (stages.try_emplace(name, stage).first->second == stage) continue;
              throw Error(ErrorKind::kInvalidArgument,
                          fmt::format("--stage-of has '{}' in stage {} and in stage {}; leave one "
                                      "of them out",
                                      name, stages.at(name), stage));
            }
          },
          "Stage that runs a node or the nodes of a module, by name or pattern (with a profile)")
      ->type_name("NAME=STAGE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

/// What decides how the model is cut, and how often it stands.
std::vector<CLI::Option*> add_layout_options(CLI::App& app, PlanOptions& options) {
  return {
      app.add_option("--cut-at", options.cuts, "Begin a stage at these nodes, by position or name")
          ->delimiter(','),
      add_stage_of_option(app, options.stage_of),
      arguments::add_words<Balance>(
          app, "--balance", options.balance,
          "Where cuts fall (with a profile): search, for the objective; to compare with it, "
          "uniform, equal numbers of nodes; parameters, equal numbers of these; tree, modules "
          "dealt out from the whole model downwards",
          {{"search", Balance::kSearch},
           {"uniform", Balance::kUniform},
           {"parameters", Balance::kParameters},
           {"tree", Balance::kTree}}),
      app.add_option("--copy", options.copies,
                     "Run these recorded nodes once per consumer instead of sending their values")
          ->delimiter(','),
      app.add_option("--stages", options.stages, "Pipeline stages (model parallel)")
          ->check(arguments::positive()),
      app.add_option("--stages-per-rank", options.stages_per_rank,
                     "Stages that each rank runs (virtual stages); the schedule says which")
          ->check(arguments::positive()),
      app.add_option("--replicas", options.replicas,
                     "Copies of the pipeline (data parallel), each with its share of lanes")
          ->check(arguments::positive()),
  };
}

/// What decides in which order it runs, and what is kept.
std::vector<CLI::Option*> add_order_options(CLI::App& app, PlanOptions& options) {
  return {
      app.add_option("--schedule", options.schedule,
                     "Order of microbatches: " +
                         fmt::format("{}", fmt::join(schedule::schedule_names(0), ", "))),
      app.add_option("--active-microbatches", options.active_microbatches,
                     "Most microbatches whose activations a rank holds at once; less memory, "
                     "longer steps. Else as many as the schedule takes")
          ->check(arguments::positive()),
      arguments::add_words<Recompute>(
          app, "--recompute", options.recompute,
          "Stages that run their forward again instead of keeping activations: auto, where the "
          "memory is too small (with a profile); none; all; regions, all, a part at a time",
          {{"auto", Recompute::kAuto},
           {"none", Recompute::kNone},
           {"all", Recompute::kAll},
           {"regions", Recompute::kRegions}}),
      arguments::add_words<Offload>(
          app, "--offload", options.offload,
          "Stages whose microbatches keep what backwards need in a file: none; all; auto, where "
          "the memory is too small (with a profile)",
          {{"none", Offload::kNone}, {"auto", Offload::kAuto}, {"all", Offload::kAll}}),
      app.add_flag("--shard-state", options.shard_state,
                   "Each replica keeps the optimizer state of a part of the parameters (ZeRO-1)"),
      app.add_flag(
          "--shard-parameters", options.shard_parameters,
          "And of their values and gradients: a stage's are gathered while it runs, and the "
          "next one's; with several stages on a rank (fully sharded)"),
      app.add_option("--schedule-file", options.schedule_file,
                     "A schedule of your own, JSON or a table .csv (docs/formats.md), without a "
                     "profile"),
  };
}

}  // namespace

void PlanArguments::add_to(CLI::App& app, bool with_file) {
  CLI::Option* plan =
      with_file ? app.add_option("--plan", file, "Plan file that `partition` wrote") : nullptr;
  std::vector<CLI::Option*> own = {
      app.add_option("--batch", options.batch.global_batch,
                     "Samples per optimizer step (B), the global batch"),
      app.add_option(
          "--microbatch", options.batch.microbatch,
          "Samples per microbatch (b); gradients of a step's microbatches are accumulated"),
      app.add_option("--lanes", options.batch.lanes,
                     "Lanes (G): equal runs of a step's microbatches, each accumulated by itself; "
                     "replicas divide them"),
      add_threads_option(app, options.threads)};
  std::ranges::copy(add_layout_options(app, options), std::back_inserter(own));
  std::ranges::copy(add_order_options(app, options), std::back_inserter(own));
  for (CLI::Option* option : own) {
    if (option->get_type_name() != "TEXT" && option->get_default_str().empty()) {
      option->capture_default_str();
    }
    if (plan != nullptr) option->excludes(plan);
  }
}

std::optional<Plan> PlanArguments::given() const {
  if (file.empty()) return std::nullopt;
  Plan plan = Plan::load(file);
  check_ranks(plan);
  return plan;
}

void PlanArguments::check_ranks(const Plan& plan) const {
  if (ranks != 0 && ranks != plan.num_ranks()) refuse_ranks(plan.num_ranks(), ranks);
}

void refuse_ranks(std::int64_t expected, std::int64_t given) {
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("the plan is for {} ranks and --ranks says {}; leave --ranks out or "
                          "partition for as many",
                          expected, given));
}

std::int64_t PlanArguments::microbatch() const {
  return file.empty() ? options.batch.microbatch : Plan::load(file).batch().microbatch;
}

int PlanArguments::num_ranks() const {
  if (ranks > 0) return ranks;
  if (!file.empty()) return Plan::load(file).num_ranks();
  const std::int64_t by_hand = session::num_ranks_by_hand(options);
  if (by_hand <= std::numeric_limits<int>::max()) return static_cast<int>(by_hand);
  throw Error(ErrorKind::kInvalidArgument, fmt::format("{} ranks are too many", by_hand));
}

void PlanArguments::check() const {
  if (!file.empty()) return check_ranks(Plan::load(file));
  layout::check_batch(options.batch);
  const int replicas = std::max(options.replicas, 1);
  if (options.batch.lanes % replicas == 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("{} replicas do not divide {} lanes; give --lanes a multiple of them",
                          options.replicas, options.batch.lanes));
}

int run_ranks(const Context& context, int num_ranks,
              const std::function<int(launch::ConnectedWorld*)>& body) {
  const launch::RankProgram program{.argv = context.argv,
                                    .environment = context.environment,
                                    .deadline = std::chrono::seconds(context.timeout_s)};
  return launch::run_ranks(program, num_ranks, [&](launch::ConnectedWorld* world) {
    try {
      return body(world);
    } catch (const std::exception& failure) {
      throw program::error_of(failure);
    }
  });
}

int run_in_world(const Context& context, int num_ranks, const std::function<int(World&)>& body) {
  return run_ranks(context, num_ranks, [&](launch::ConnectedWorld* ranks) {
    World world = session::WorldMaker::make(ranks, {.timeout_s = context.timeout_s},
                                            context.environment.log_level);
    return body(world);
  });
}

int run_alone(const Context& context, const std::function<int(World&)>& body) {
  World world = session::WorldMaker::make(nullptr, {.timeout_s = context.timeout_s},
                                          context.environment.log_level);
  return body(world);
}

void print(const Context& context, const Json& json, const std::string& text) {
  const std::string out = context.json ? json.dump(2) + "\n" : text;
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

}  // namespace trireme::command
