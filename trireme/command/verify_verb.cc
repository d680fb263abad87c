#include <fmt/format.h>

#include <algorithm>

#include "trireme/command/training_options.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/train/construct.h"
#include "trireme/engine/train/verify.h"

namespace trireme::command {
namespace {

std::string verdict(const train::Comparison& one) {
  if (one.is_bitwise) return "same bits";
  const std::string largest = fmt::format(
      "largest relative difference: losses {:.1e}, first gradients {:.1e}, weights "
      "{:.1e}",
      one.worst_loss, one.worst_gradient, one.worst_weight);
  if (one.passes()) return "within tolerance (" + largest + ")";
  return fmt::format("DIFFERS, first in the {} ({})", one.first_difference, largest);
}

Json to_json(const train::Comparison& one) {
  return {{"against", one.against},
          {"passes", one.passes()},
          {"bitwise", one.is_bitwise},
          {"must_be_bitwise", one.must_be_bitwise},
          {"first_difference", one.first_difference},
          {"worst_loss", one.worst_loss},
          {"worst_gradient", one.worst_gradient},
          {"worst_weight", one.worst_weight}};
}

}  // namespace

Body add_verify(CLI::App& app, Context& context) {
  struct Options {
    PlanOptions plan;
    train::VerifyOptions verify;
  };
  auto options = std::make_shared<Options>();
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--steps", options->verify.num_steps, "Steps to train and compare")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_optimizer_options(app, options->verify.optimizer);
  app.footer("Example: trireme verify --plan plan.json --steps 5");
  return [options, &context] {
    options->verify.seed = context.seed;
    layout::Plan plan;
    {
      const Workload workload = train::construct(context.workload(), context.seed);
      const train::BatchReader reader(workload.training, workload.model);
      plan = options->plan.plan_for(
          record::record(workload.model, reader.maker(), graph::Mode::kTrain).graph);
    }
    const auto results = train::verify(context.workload(), plan, options->verify);
    Json json = Json::array();
    std::string text = fmt::format("{} steps, {} stages, {} lanes\n", options->verify.num_steps,
                                   plan.stages.size(), plan.batch.lanes);
    for (const train::Comparison& one : results) {
      json.push_back(to_json(one));
      text += fmt::format("  against the {}: {}\n", one.against, verdict(one));
    }
    print(context, json, text);
    const bool passes = std::all_of(results.begin(), results.end(),
                                    [](const train::Comparison& one) { return one.passes(); });
    return passes ? 0 : 1;
  };
}

}  // namespace trireme::command
