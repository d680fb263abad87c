#include <fmt/format.h>

#include <algorithm>

#include "trireme/arguments/numbers.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_plan.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::command {
namespace {

std::string verdict(const reference::Comparison& one) {
  if (one.is_bitwise) {
    return one.is_finite ? "same bits" : "same bits, but the losses are not finite";
  }
  if (one.must_be_bitwise) return "DIFFERS, first in the " + one.first_difference;
  const std::string largest = fmt::format(
      "largest relative difference: losses {:.1e}, first gradients {:.1e}, weights "
      "{:.1e}",
      one.worst_loss, one.worst_gradient, one.worst_weight);
  if (one.passes()) return "within tolerance (" + largest + ")";
  return fmt::format("DIFFERS, first in the {} ({})", one.first_difference, largest);
}

Json to_json(const reference::Comparison& one) {
  Json json = {{"against", one.against},
               {"passes", one.passes()},
               {"bitwise", one.is_bitwise},
               {"finite", one.is_finite},
               {"must_be_bitwise", one.must_be_bitwise},
               {"first_difference", one.first_difference}};
  if (one.must_be_bitwise) return json;
  json["worst_loss"] = one.worst_loss;
  json["worst_gradient"] = one.worst_gradient;
  json["worst_weight"] = one.worst_weight;
  return json;
}

struct VerifyVerbOptions {
  PlanArguments plan;
  bool serial = false;
  train::VerifyOptions verify;
};

layout::Plan make_plan(const VerifyVerbOptions& options, const Context& context) {
  const Workload workload = train::construct(context.workload(), context.seed);
  const record::Recording recorded =
      record_model(context, workload, graph::Mode::kTrain, options.plan.microbatch());
  layout::Plan plan = options.plan.plan_for(recorded.graph);
  if (!options.serial) train::check_comparable(recorded.graph, plan);
  return plan;
}

/// Prints the answer; the exit code.
int answer(const VerifyVerbOptions& options, const Context& context, const layout::Plan& plan,
           const std::vector<reference::Comparison>& results) {
  Json json = Json::array();
  const int num_replicas = layout::train_role(plan).mesh.data;
  std::string text = fmt::format("{} steps, {} stages x {} replicas, schedule {}, {} lanes\n",
                                 options.verify.num_steps, plan.stages.size(), num_replicas,
                                 plan.schedule.name, plan.batch.lanes);
  for (const reference::Comparison& one : results) {
    json.push_back(to_json(one));
    text += fmt::format("  against the {}: {}\n", one.against, verdict(one));
  }
  print(context, json, text);
  const bool passes = std::all_of(results.begin(), results.end(),
                                  [](const reference::Comparison& one) { return one.passes(); });
  return passes ? 0 : 1;
}

/// This rank's part: rank 0's runs in one process, then the ranks' run.
int verify_rank(const VerifyVerbOptions& options, const Context& context,
                const collectives::World& world) {
  const layout::Plan plan = make_plan(options, context);
  collectives::require_same(world, layout::plan_sha256(plan), "plan or model");
  collectives::require_same(world,
                            train::to_text({.seed = options.verify.seed,
                                            .optimizer = options.verify.optimizer,
                                            .drift_check_steps = {}}) +
                                fmt::format("steps {}\n", options.verify.num_steps),
                            "options of the verification");
  train::Verification reference =
      train::verify_on_first(world, context.workload(), plan, options.verify);
  reference::Comparison result =
      train::verify_rank(world, context.workload(), plan, options.verify, reference.run);
  result.first_difference = train::first_difference(world, result);
  result.is_bitwise = result.first_difference.empty();
  if (world.rank() != 0) return result.passes() ? 0 : 1;
  reference.comparisons.insert(reference.comparisons.begin(), result);
  return answer(options, context, plan, reference.comparisons);
}

}  // namespace

Body add_verify(CLI::App& app, Context& context) {
  auto options = std::make_shared<VerifyVerbOptions>();
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--steps", options->verify.num_steps, "Steps to train and compare")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_flag(
      "--serial", options->serial,
      "Compare the serial executor under the plan, in this process, with the uncut and the "
      "plain model");
  add_optimizer_options(app, options->verify.optimizer);
  app.footer(
      "Example: trireme verify --stages 2 --replicas 2 --schedule interleaved --lanes 4 --steps 5\n"
      "Ranks, each a process, are compared with the serial executor, and that with the uncut and "
      "the plain model, on rank 0; a plan for one rank as with --serial.");
  return [options, &context] {
    options->verify.seed = context.seed;
    options->verify.sizes = context.sizes;
    if (!context.environment.ranks) options->plan.check();
    const auto verify_here = [&] {
      const layout::Plan plan = make_plan(*options, context);
      return answer(*options, context, plan,
                    train::verify(context.workload(), plan, options->verify));
    };
    if (options->serial) return verify_here();
    return run_ranks(context, options->plan.num_ranks(), [&](const launch::ConnectedWorld* world) {
      return world == nullptr ? verify_here() : verify_rank(*options, context, world->world());
    });
  };
}

}  // namespace trireme::command
