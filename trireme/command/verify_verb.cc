#include <fmt/format.h>

#include "trireme/arguments/numbers.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"

namespace trireme::command {
namespace {

std::string verdict(const Comparison& one) {
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

Json to_json(const Comparison& one) {
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
  VerifyOptions verify;  ///< Its plan is what `plan` says.
};

/// One rank's part: the exit code.
int verify_rank(const VerifyVerbOptions& options, const Context& context, World& world) {
  const Verification result = verify_training(world, context.workload(), options.verify);
  const int code = result.passes() ? 0 : 1;
  if (world.rank() != 0) return code;
  Json json = Json::array();
  const Plan& plan = result.plan;
  std::string text = fmt::format("{} steps, {} stages x {} replicas, schedule {}, {} lanes\n",
                                 options.verify.num_steps, plan.num_stages(), plan.num_replicas(),
                                 plan.schedule(), plan.batch().lanes);
  for (const Comparison& one : result.comparisons) {
    json.push_back(to_json(one));
    text += fmt::format("  against the {}: {}\n", one.against, verdict(one));
  }
  print(context, json, text);
  return code;
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
    options->verify.batch_sizes = context.sizes;
    options->verify.planning = options->plan.options;
    if (!context.environment.ranks) options->plan.check();
    const auto verify_here = [&](World& world) {
      options->verify.plan = options->plan.given();
      return verify_rank(*options, context, world);
    };
    if (options->serial) return run_alone(context, verify_here);
    return run_in_world(context, options->plan.num_ranks(), verify_here);
  };
}

}  // namespace trireme::command
