#include "trireme/plan/simulate/expected_messages.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/plans/chain_model.h"
#include "tests/plans/random_models.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;
using layout::testing::make_topology;

constexpr std::int64_t kMessage = schedule::kMessageHeaderBytes + 40;

/// Two stages that send values of 10 elements; F of the second takes `late_us`.
std::vector<std::vector<HeldMessages>> expected_of(const std::string& schedule, double late_us,
                                                   int microbatches) {
  const auto model = make_chain({{1, 1, 1, 10, 1}, {late_us, 1, 1, 20, 1}});
  const layout::Plan plan = make_plan(model.graph, {{1}, microbatches, 1, schedule});
  const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
  const topology::Topology topology = make_topology(2);
  const PriceInputs inputs{model.graph, plan, map, model.profile, topology};
  const Forecast step = forecast(inputs);
  return expected_messages(step.program, step.simulation, inputs);
}

// Links cost nothing: the receiver takes each value as soon as it is sent, unless it is busy and has two ahead.
TEST(ExpectedMessages, AFastReceiverLeavesNothingWithTheSender) {
  const auto held = expected_of("simple", 0.5, 4);
  for (const HeldMessages& one : held[0]) EXPECT_EQ(one.during, 0);
}

TEST(ExpectedMessages, PileUpBeforeASlowReceiver) {
  const auto held = expected_of("simple", 100, 5);
  // Stage 0 is done with its forwards after 5 us: one value is in use, two are ahead, two are left.
  EXPECT_EQ(held[0][4].after, 2 * kMessage);
  EXPECT_EQ(held[1][0].during, 2 * kMessage);
  EXPECT_EQ(held[1][1].during, 2 * kMessage);
  EXPECT_EQ(held[1][4].during, 0);
}

/// No event is as bad as all can be at once.
TEST(ExpectedMessages, AreNeverMoreThanCanBe) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto model = layout::testing::random_model(random, 12);
    const std::string schedules[] = {"simple", "interleaved", "zero_bubble"};
    const layout::Plan plan =
        make_plan(model.graph, {layout::testing::random_cuts(random, model.graph, 3),
                                1 + static_cast<int>(random() % 6),
                                1 + static_cast<int>(random() % 2), schedules[random() % 3]});
    const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
    const topology::Topology topology = make_topology(layout::train_role(plan).num_ranks());
    const PriceInputs inputs{model.graph, plan, map, model.profile, topology};
    const Forecast step = forecast(inputs);
    const std::vector<RankMemory> expected = expected_memory(inputs, step, {});
    ASSERT_EQ(expected.size(), step.memory.size());
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_LE(expected[rank].total(), step.memory[rank].total()) << "round " << round;
      EXPECT_EQ(expected[rank].parameters, step.memory[rank].parameters);
    }
  }
}

}  // namespace
}  // namespace trireme::simulate
