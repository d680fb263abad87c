#include "trireme/plan/partition/front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

std::int64_t peak_of(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

double step_of(const layout::Plan& plan) { return plan.prediction->step_ms; }

Model twelve_equal_nodes() { return make_chain(std::vector<ChainNode>(12, {1, 1, 1, 100, 50})); }

FrontOptions front_options(const BatchLayout& batch) {
  FrontOptions options;
  options.plan.batch = batch;
  return options;
}

TEST(Front, NoPlanIsBeatenByAnother) {
  const Model model = twelve_equal_nodes();
  const auto plans = front(model.graph, model.profile, make_topology(4),
                           front_options({.global_batch = 16, .microbatch = 1, .lanes = 2}));
  ASSERT_GE(plans.size(), 4U);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_GT(step_of(plans[i]), 1.001 * step_of(plans[i - 1]));
    EXPECT_LT(peak_of(plans[i]), peak_of(plans[i - 1]));
  }
}

TEST(Front, ItsEndsAreTheFastestAndTheSmallest) {
  const Model model = twelve_equal_nodes();
  const topology::Topology topology = make_topology(4);
  const FrontOptions options = front_options({16, 1, 2});
  const auto plans = front(model.graph, model.profile, topology, options);
  PartitionOptions asked = options.plan;
  asked.replicas = 0;
  asked.may_idle = false;
  EXPECT_LE(step_of(plans.front()),
            1.001 * step_of(partition_over_replicas(model.graph, model.profile, topology, asked)));
  asked.objective = Objective::kMemory;
  asked.max_slowdown = 100;
  asked.recompute = Recompute::kAll;
  EXPECT_LE(peak_of(plans.back()),
            peak_of(partition_over_replicas(model.graph, model.profile, topology, asked)));
}

/// A plan for each size that somebody may have: at least as fast as the planner's for half of what the fastest takes.
TEST(Front, HasPlansBetween) {
  const Model model = twelve_equal_nodes();
  const topology::Topology topology = make_topology(4);
  FrontOptions options = front_options({16, 1, 1});
  const auto plans = front(model.graph, model.profile, topology, options);
  const std::int64_t middle = (peak_of(plans.front()) + peak_of(plans.back())) / 2;
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [&](const layout::Plan& plan) {
    return peak_of(plan) < middle && step_of(plan) < step_of(plans.back());
  }));
}

TEST(Front, KeepsWhatIsFixed) {
  const Model model = twelve_equal_nodes();
  FrontOptions options = front_options({16, 1, 2});
  options.plan.replicas = 2;
  options.plan.schedule = "simple";
  options.stages_per_rank = {1};
  options.may_shard = false;
  options.plan.recompute = Recompute::kNone;
  for (const layout::Plan& plan : front(model.graph, model.profile, make_topology(4), options)) {
    EXPECT_EQ(layout::train_role(plan).mesh, (layout::Mesh{2, 2, 1}));
    EXPECT_EQ(plan.schedule.name, "simple");
    EXPECT_FALSE(plan.sharded_state);
    for (const layout::Stage& stage : plan.stages) EXPECT_FALSE(stage.recompute);
  }
}

TEST(Front, EveryPlanFitsIntoTheMemory) {
  const Model model = twelve_equal_nodes();
  const topology::Topology topology = make_topology(4);
  FrontOptions options = front_options({16, 1, 1});
  const auto all = front(model.graph, model.profile, topology, options);
  options.plan.device_memory_bytes = peak_of(all.front()) - 1;
  for (const layout::Plan& plan : front(model.graph, model.profile, topology, options)) {
    EXPECT_LE(peak_of(plan), options.plan.device_memory_bytes);
  }
  options.plan.device_memory_bytes = 1;
  try {
    front(model.graph, model.profile, topology, options);
    FAIL() << "a plan that needs no memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  }
}

/// The fastest at the upper left, the smallest at the lower right.
TEST(Front, IsDrawn) {
  const Model model = twelve_equal_nodes();
  const auto plans = front(model.graph, model.profile, make_topology(4), front_options({16, 1, 1}));
  const std::string text = show_front(plans);
  const std::string last = std::to_string(plans.size() - 1);
  EXPECT_NE(text.find("step ms"), std::string::npos) << text;
  EXPECT_LT(text.find("|0"),
            text.find(" |" + std::string(59, ' ') + (plans.size() > 10 ? "*" : last)));
  EXPECT_EQ(show_front({}), "");
}

TEST(Front, IsTheSameEachTime) {
  const Model model = twelve_equal_nodes();
  const FrontOptions options = front_options({16, 1, 2});
  EXPECT_EQ(front(model.graph, model.profile, make_topology(4), options),
            front(model.graph, model.profile, make_topology(4), options));
}

}  // namespace
}  // namespace trireme::partition
