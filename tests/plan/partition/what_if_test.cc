#include "trireme/plan/partition/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/plans/chain_model.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/predicted_timeline.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;
using ::testing::HasSubstr;

/// Two stages of 2 and 1 nodes of 12 us (F 4, I 4, W 4), four microbatches, links of 5 us.
struct WhatIfCase {
  Model model = make_chain(std::vector<ChainNode>(3, {4, 4, 4, 1, 1}));
  topology::Topology topology;
  layout::Plan plan;
  simulate::ForecastOptions options;

  explicit WhatIfCase(int replicas = 1) : topology(make_topology(2 * replicas)) {
    model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 5}}}};
    plan = layout::testing::make_plan(model.graph,
                                      {{2}, /*num_microbatches=*/4, replicas, "interleaved"});
  }

  PlannedStep step() const { return {model.graph, plan, model.profile, topology, options}; }

  simulate::Forecast forecast() const {
    const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
    return simulate::forecast({model.graph, plan, map, model.profile, topology}, options);
  }
};

const WhatIf* find_change(const WhatIfs& all, const std::string& change) {
  const auto found = std::find_if(all.changes.begin(), all.changes.end(),
                                  [&](const WhatIf& one) { return one.change == change; });
  return found == all.changes.end() ? nullptr : &*found;
}

TEST(WhatIf, NowIsTheForecast) {
  const WhatIfCase one;
  EXPECT_EQ(what_if(one.step()).now.step_us, one.forecast().simulation.step_us);
  EXPECT_EQ(what_if(one.step()).now.peak_bytes, one.forecast().peak_bytes());
}

/// Stage 0: 4 x 24 us of work; before its first backward it waits for stage 1 and two messages.
TEST(WhatIf, MessagesInNoTimeSaveWhatIsWaitedForThem) {
  const WhatIfCase one;
  const WhatIfs all = what_if(one.step());
  const WhatIf *none = find_change(all, "messages in no time"),
               *fast = find_change(all, "links twice as fast");
  ASSERT_NE(none, nullptr);
  ASSERT_NE(fast, nullptr);
  EXPECT_LT(none->step_us, fast->step_us);
  EXPECT_LT(fast->step_us, all.now.step_us);
}

/// Two pipelines whose messages of 4 MB share a card, of 1 GB/s as the network is.
WhatIfCase over_a_card() {
  WhatIfCase one(/*replicas=*/2);
  one.model = make_chain(std::vector<ChainNode>(3, {4, 4, 4, 1'000'000, 1}));
  one.model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 5}}},
                             {profile::LinkKind::kNetwork, {{0, 0, 0}, {1000, 1, 1}}}};
  one.plan = layout::testing::make_plan(one.model.graph, {{2}, 4, 2, "interleaved"});
  one.topology.hosts.push_back(one.topology.hosts[0]);
  one.topology.hosts[1].name = "another";
  one.topology.ranks[2].host = one.topology.ranks[3].host = 1;
  one.topology.shared_links = {{"card", {0, 1}, 1}};
  return one;
}

TEST(WhatIf, SharedLinksAreFasterToo) {
  const WhatIfCase one = over_a_card();
  const WhatIfs all = what_if(one.step());
  const WhatIf* fast = find_change(all, "links twice as fast");
  ASSERT_NE(fast, nullptr);
  WhatIfCase twice = over_a_card();
  twice.model.profile.links[0].times = {{0, 2.5, 2.5}};
  twice.model.profile.links[1].times = {{0, 0, 0}, {1000, 0.5, 0.5}};
  twice.topology.shared_links[0].gb_per_s = 2;
  EXPECT_NEAR(fast->step_us, twice.forecast().simulation.step_us, 1e-6);
  EXPECT_LT(fast->step_us, 0.51 * all.now.step_us);  // It is all messages.
}

/// What remains are small sums of a few microseconds.
TEST(WhatIf, MessagesInNoTimeTakeNothingOfSharedLinks) {
  const WhatIfCase one = over_a_card();
  const WhatIfs all = what_if(one.step());
  const WhatIf* none = find_change(all, "messages in no time");
  ASSERT_NE(none, nullptr);
  EXPECT_GT(all.now.step_us, 8 * 4000);
  EXPECT_LT(none->step_us, 300);
}

TEST(WhatIf, TheSlowestStageIsTheOneToMakeFaster) {
  const WhatIfCase one;
  const WhatIfs all = what_if(one.step());
  const WhatIf *first = find_change(all, "stage 0 in half the time"),
               *second = find_change(all, "stage 1 in half the time");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_LT(first->step_us, second->step_us);
  EXPECT_EQ(find_change(all, "sums over replicas in no time"), nullptr);  // There are none.
  EXPECT_EQ(find_change(all, "a core for each rank"), nullptr);           // They have them.
}

TEST(WhatIf, BestFirst) {
  const WhatIfCase one;
  const WhatIfs all = what_if(one.step());
  EXPECT_TRUE(std::is_sorted(
      all.changes.begin(), all.changes.end(),
      [](const WhatIf& a, const WhatIf& b) { return a.us_per_sample < b.us_per_sample; }));
  EXPECT_NE(find_change(all, "schedule zero_bubble"), nullptr);
  EXPECT_NE(find_change(all, "the fastest plan for these ranks"), nullptr);
  const WhatIf* more = find_change(all, "a rank more, and a new plan");
  ASSERT_NE(more, nullptr);
  EXPECT_LE(more->step_us, find_change(all, "the fastest plan for these ranks")->step_us);
}

TEST(WhatIf, SharedCoresAreSeen) {
  WhatIfCase one;
  one.topology = make_topology(2, /*num_shared_cores=*/1);
  const WhatIfs all = what_if(one.step());
  const WhatIf* own = find_change(all, "a core for each rank");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->step_us, WhatIfCase().forecast().simulation.step_us);
}

TEST(WhatIf, TwiceTheMicrobatchesHideTheEnds) {
  const WhatIfCase one;
  const WhatIfs all = what_if(one.step());
  const WhatIf* twice = find_change(all, "twice the microbatches");
  ASSERT_NE(twice, nullptr);
  EXPECT_GT(twice->step_us, all.now.step_us);
  EXPECT_LT(twice->us_per_sample, all.now.us_per_sample);
}

/// A measured step is played with what its actions took: a straggler is seen, and what it costs.
TEST(WhatIf, MeasuredTimesArePlayed) {
  const WhatIfCase one;
  const simulate::Forecast forecast = one.forecast();
  schedule::Timeline measured = simulate::predicted_timeline(forecast.program, forecast.simulation);
  PlannedStep step = one.step();
  step.measured = &measured;
  EXPECT_EQ(what_if(step).now.step_us, forecast.simulation.step_us);
  for (schedule::TimelineEvent& event : measured.events) {
    if (event.name == "0B3") event.duration_us += 1000;
  }
  const WhatIfs late = what_if(step);
  EXPECT_EQ(late.now.step_us, forecast.simulation.step_us + 1000);
  const WhatIf* equal = find_change(late, "microbatches of equal length");
  ASSERT_NE(equal, nullptr);
  EXPECT_LE(equal->step_us, late.now.step_us);
}

TEST(WhatIf, AReplicaThatIsLateIsSeen) {
  const WhatIfCase one(/*replicas=*/2);
  const simulate::Forecast forecast = one.forecast();
  schedule::Timeline measured = simulate::predicted_timeline(forecast.program, forecast.simulation);
  for (schedule::TimelineEvent& event : measured.events) {
    if (event.rank == 1 && event.name == "0B3") event.duration_us += 1000;
  }
  PlannedStep step = one.step();
  step.measured = &measured;
  const WhatIfs late = what_if(step);
  EXPECT_EQ(late.now.step_us, forecast.simulation.step_us + 1000);
  const WhatIf* fastest = find_change(late, "no replica slower than the fastest");
  ASSERT_NE(fastest, nullptr);
  EXPECT_EQ(fastest->step_us, forecast.simulation.step_us);
  EXPECT_EQ(find_change(late, "times 10 % apart at random, mean step"), nullptr);
}

/// Who is late makes others wait, so that the mean is longer too.
TEST(WhatIf, TimesThatDifferMakeStepsLonger) {
  for (const int replicas : {1, 4}) {
    const WhatIfCase one(replicas);
    const WhatIfs all = what_if(one.step());
    const WhatIf *mean = find_change(all, "times 10 % apart at random, mean step"),
                 *rare = find_change(all, "times 10 % apart at random, 1 step in 20");
    ASSERT_NE(mean, nullptr);
    ASSERT_NE(rare, nullptr);
    // Stage 0 hardly waits, so that its mean is the step's.
    EXPECT_LT(mean->step_us, (replicas == 1 ? 1.01 : 1.2) * all.now.step_us);
    EXPECT_GT(mean->step_us, (replicas == 1 ? 0.99 : 1.02) * all.now.step_us);
    EXPECT_GT(rare->step_us, mean->step_us);
    EXPECT_EQ(rare->us_per_sample, rare->step_us / (4 * replicas));
    EXPECT_EQ(find_change(all, "no replica slower than the fastest"), nullptr);
  }
}

TEST(WhatIf, IsShownAsATable) {
  const WhatIfCase one;
  const std::string text = show(what_if(one.step()));
  EXPECT_THAT(text, HasSubstr("as it is"));
  EXPECT_THAT(text, HasSubstr("1.000x"));
  EXPECT_THAT(text, HasSubstr("messages in no time"));
}

}  // namespace
}  // namespace trireme::partition
