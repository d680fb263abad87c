#include <gtest/gtest.h>

#include <random>

#include "tests/models/models.h"
#include "tests/plans/chain_model.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/plan/layout/matching_cuts.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::session {
namespace {

constexpr int kRounds = 2;

/// A plan for random costs on machines whose network is slow or fast, where branches may change places.
layout::Plan random_plan(const graph::Graph& train, int num_stages, std::mt19937& random) {
  profile::Profile profile = layout::testing::make_free_profile(train);
  std::lognormal_distribution<double> times(4, 1.5);
  for (profile::NodeCost& cost : profile.costs) {
    cost.forward_us = times(random);
    cost.input_us = cost.weight_us = times(random);
  }
  const double us = random() % 2 == 0 ? 1 : 500;
  profile.links = {{profile::LinkKind::kHost, {{0, us, us}, {1'000'000, 2 * us, 2 * us}}}};
  const partition::PartitionOptions options{.batch = {8, 1, 1}, .stages = num_stages};
  return partition::partition(train, profile, layout::testing::make_topology(num_stages), options);
}

// Whatever order the planner chooses. Once a rank ended before its first step, as the evaluation could not be cut so.
TEST(PlansToEvaluate, AnyThatThePlannerMakesCanBeEvaluated) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_reordered = 0;
  for (const std::string& name : models::names()) {
    const models::TestModel test = models::make(name);
    const auto record = [&](graph::Mode mode) {
      return record::record(test.model, test.make_batch, mode).graph;
    };
    const graph::Graph train = record(graph::Mode::kTrain), eval = record(graph::Mode::kEval);
    for (int round = 0; round < kRounds; ++round) {
      const layout::Plan plan = random_plan(train, 2 + static_cast<int>(random() % 3), random);
      const graph::Graph planned = layout::planned_graph(train, plan);
      const graph::Graph matching = layout::matching_graph(planned, plan, eval);
      EXPECT_NO_THROW(layout::matching_plan(planned, plan, matching)) << name;
      num_reordered += plan.node_order.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(num_reordered, 0);
}

}  // namespace
}  // namespace trireme::session
