#include <fmt/format.h>

#include <algorithm>

#include "trireme/arguments/numbers.h"
#include "trireme/command/training_arguments.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/verify_shards.h"
#include "trireme/error.h"

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
  int shards = 1;
  bool spatial = false;
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

/// Shards are one stage of one replica so far.
void check_shards(const VerifyVerbOptions& options) {
  if (options.spatial && options.shards <= 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "--spatial splits rows over shards; say with --shards over how many");
  }
  if (options.shards <= 1) return;
  const PlanOptions& plan = options.plan.options;
  if (!options.serial && !options.plan.given() && plan.stages <= 1 && plan.replicas <= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "--shards is for one stage and one replica without a plan so far; leave out --plan, "
              "--stages, --replicas and --serial");
}

/// One rank's part of a training in shards: the exit code.
int verify_shard(const VerifyVerbOptions& options, const Context& context, World& world) {
  // All that can be split is, whether it would be worth its sums or not.
  const train::ShardVerification result = train::verify_shards(
      world.value(), context.workload(),
      {.steps = {.num_steps = options.verify.num_steps,
                 .seed = options.verify.seed,
                 .optimizer = options.verify.optimizer,
                 .sizes = options.verify.batch_sizes},
       .batch = options.plan.options.batch,
       .sharding = {.num_shards = options.shards, .flops_per_second = 1, .link_seconds = 0},
       .kind = options.spatial ? sharding::SplitKind::kTiles : sharding::SplitKind::kTensors});
  const bool passes = std::ranges::all_of(result.comparisons, &Comparison::passes);
  if (world.rank() != 0) return passes ? 0 : 1;
  Json json = Json::array();
  std::string text = fmt::format("{} steps, {} shards on {} ranks, {} parts of the model split\n",
                                 options.verify.num_steps, options.shards, world.size(),
                                 result.sharding.parts.size());
  for (const Comparison& one : result.comparisons) {
    json.push_back(to_json(one));
    text += fmt::format("  against {}: {}\n", one.against, verdict(one));
  }
  text += fmt::format("a step took {:.1f} ms on rank 0, {:.1f} ms of the whole model alone\n",
                      result.shard_step_ms, result.model_step_ms);
  print(context,
        {{"comparisons", json},
         {"shard_step_ms", result.shard_step_ms},
         {"model_step_ms", result.model_step_ms}},
        text);
  return passes ? 0 : 1;
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
  app.add_option("--shards", options->shards,
                 "Parts of each tensor that can be split, each on a rank of its own: compared "
                 "with all of them in one process, and that with the model")
      ->check(arguments::positive())
      ->capture_default_str();
  app.add_flag("--spatial", options->spatial,
               "With --shards: rows of images and slices of volumes are split, with halos between "
               "the ranks, in the place of weights");
  add_optimizer_options(app, options->verify.optimizer);
  app.footer(
      "Example: trireme verify --stages 2 --replicas 2 --schedule interleaved --lanes 4 --steps 5\n"
      "Ranks, each a process, are compared with the serial executor, and that with the uncut and "
      "the plain model, on rank 0; a plan for one rank as with --serial.");
  return [options, &context] {
    options->verify.seed = context.seed;
    options->verify.batch_sizes = context.sizes;
    options->verify.planning = options->plan.options;
    check_shards(*options);
    if (options->shards > 1) {
      return run_in_world(context, options->shards,
                          [&](World& world) { return verify_shard(*options, context, world); });
    }
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
