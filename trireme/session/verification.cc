#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/engine/train/verify_plan.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/session.h"
#include "trireme/session/planning.h"
#include "trireme/session/processors.h"
#include "trireme/session/training.h"

namespace trireme {
namespace {

/// The plan, which fits the model and, where ranks are compared, can be.
layout::Plan plan_of(const VerifyOptions& options, const MakeWorkload& make, const World& world) {
  const std::int64_t microbatch =
      options.plan ? options.plan->batch().microbatch : options.planning.batch.microbatch;
  const Workload workload = train::construct(make, options.seed);
  const record::Recording recorded = session::record_model(
      {workload.model, workload.training, graph::Mode::kTrain, microbatch, options.batch_sizes},
      world.value());
  layout::Plan plan = options.plan ? session::checked_plan(*options.plan, recorded.graph)
                                   : session::plan_by_hand(recorded.graph, options.planning);
  if (world.size() > 1) train::check_comparable(recorded.graph, plan);
  return plan;
}

std::string shared_text(const VerifyOptions& options) {
  return train::to_text(
             {.seed = options.seed, .optimizer = options.optimizer, .drift_check_steps = {}}) +
         fmt::format("steps {}\n", options.num_steps);
}

/// Rank 0's runs in one process, then the ranks' run.
std::vector<Comparison> compare_ranks(const collectives::World& world, const MakeWorkload& make,
                                      const layout::Plan& plan, const train::ComparedSteps& steps) {
  train::ReferenceRun reference = train::verify_on_first(world, make, plan, steps);
  Comparison ranks = train::verify_rank(world, make, plan, steps, reference.run);
  ranks.first_difference = train::first_difference(world, ranks);
  ranks.is_bitwise = ranks.first_difference.empty();
  reference.comparisons.insert(reference.comparisons.begin(), std::move(ranks));
  return std::move(reference.comparisons);
}

}  // namespace

bool Verification::passes() const {
  return std::ranges::all_of(comparisons, [](const Comparison& one) { return one.passes(); });
}

Verification verify_training(World& world, const MakeWorkload& make, const VerifyOptions& options) {
  session::use_threads(session::threads_of(options.plan, options.planning));
  const auto plan = std::make_shared<const layout::Plan>(plan_of(options, make, world));
  const train::ComparedSteps steps{.num_steps = options.num_steps,
                                   .seed = options.seed,
                                   .optimizer = options.optimizer,
                                   .sizes = options.batch_sizes};
  if (world.size() == 1) return {Plan(plan), train::verify(make, *plan, steps)};
  collectives::require_same(world.value(), layout::plan_sha256(*plan), "plan or model");
  collectives::require_same(world.value(), shared_text(options), "options of the verification");
  return {Plan(plan), compare_ranks(world.value(), make, *plan, steps)};
}

}  // namespace trireme
