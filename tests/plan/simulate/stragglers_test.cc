#include "trireme/plan/simulate/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_topology;
using schedule::Operation;
using schedule::OperationKind;

/// Ranks that work once, and wait for each other.
struct Meeting {
  schedule::StepProgram program;
  Prices prices;
  topology::Topology topology;

  explicit Meeting(int num_ranks) : topology(make_topology(num_ranks)) {
    schedule::RankGroup world;
    for (int rank = 0; rank < num_ranks; ++rank) {
      world.ranks.push_back(rank);
      program.ranks.push_back(
          {{.kind = OperationKind::kUpdate}, {.kind = OperationKind::kExchange, .group = 0}});
      prices.push_back({{100, 0}, {0, 0}});
    }
    program.groups = {world};
  }

  StepSpread play(const Stragglers& stragglers) const {
    return play_stragglers(program, prices, topology, stragglers);
  }
};

TEST(Stragglers, WithoutAnyStepsTakeTheirTime) {
  const auto model = layout::testing::make_chain({{1, 2, 3}, {3, 1, 2}});
  const layout::Plan plan = layout::testing::make_plan(model.graph, {{1}, 4, 2, "interleaved"});
  const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
  const topology::Topology topology = make_topology(4);
  const PriceInputs inputs{model.graph, plan, map, model.profile, topology};
  const Forecast step = forecast(inputs);
  const StepSpread times = play_stragglers(step.program, prices(step.program, step.stages, inputs),
                                           topology, {.num_steps = 3});
  EXPECT_EQ(times.sorted_us, std::vector<double>(3, step.simulation.step_us));
}

TEST(Stragglers, OneRankTakesItsPriceInTheMean) {
  const StepSpread times = Meeting(1).play({.spread = 0.3, .num_steps = 4000});
  EXPECT_NEAR(times.mean_us(), 100, 2);  // 4 standard deviations
  // The median of a log-normal time is below its mean, and its logarithm spreads by 0.3.
  EXPECT_NEAR(times.quantile_us(0.5), 100 * std::exp(-0.045), 3);
  EXPECT_NEAR(times.quantile_us(0.975), 100 * std::exp(1.96 * 0.3 - 0.045), 8);
}

/// The largest of 16 normal numbers is 1.766 in the mean, with a variance of 0.295.
TEST(Stragglers, ManyRanksTakeTheLongestOfTheirTimes) {
  const StepSpread times = Meeting(16).play({.spread = 0.2, .num_steps = 1000});
  EXPECT_NEAR(times.mean_us(), 100 * std::exp(0.2 * 1.766 - 0.02 + 0.295 * 0.04 / 2), 2);
}

TEST(Stragglers, AStepIsAsSlowAsItsSlowestRank) {
  const StepSpread times =
      Meeting(20).play({.slow_part = 0.05, .slow_factor = 3, .num_steps = 1000});
  const auto num_slow = std::ranges::count(times.sorted_us, 300.0);
  EXPECT_EQ(num_slow + std::ranges::count(times.sorted_us, 100.0), 1000);
  EXPECT_NEAR(static_cast<double>(num_slow) / 1000, 1 - std::pow(0.95, 20), 0.06);
  EXPECT_EQ(times.quantile_us(0), 100);
  EXPECT_EQ(times.quantile_us(1), 300);
}

/// The backward takes twice as long, and so the reduction starts twice as late.
TEST(Stragglers, AReductionStartsLaterInALongerBackward) {
  schedule::StepProgram program;
  program.groups = {{schedule::GroupKind::kData, 0, {0}}};
  program.ranks = {{{.kind = OperationKind::kReduce, .group = 0, .item = 5},
                    {.kind = OperationKind::kUpdate},
                    {.kind = OperationKind::kJoin, .item = 5}}};
  const Prices prices = {{{0, 20, 4}, {10, 0}, {0, 0}}};
  const StepSpread times = play_stragglers(program, prices, make_topology(1),
                                           {.slow_part = 1, .slow_factor = 2, .num_steps = 1});
  EXPECT_EQ(times.sorted_us, std::vector<double>{28});
}

TEST(Stragglers, TheSameSeedGivesTheSameTimes) {
  const Meeting meeting(3);
  const Stragglers stragglers{.spread = 0.1, .num_steps = 5, .seed = 1};
  EXPECT_EQ(meeting.play(stragglers).sorted_us, meeting.play(stragglers).sorted_us);
  EXPECT_NE(meeting.play(stragglers).sorted_us,
            meeting.play({.spread = 0.1, .num_steps = 5, .seed = 2}).sorted_us);
}

TEST(Stragglers, WhatIsNotInItsRangeIsRefused) {
  const auto refusal = [](const Stragglers& stragglers) {
    try {
      Meeting(1).play(stragglers);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return std::string(error.message());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({.spread = -1}), "stragglers: spread must be from 0 to 10, got -1.000000");
  EXPECT_THAT(refusal({.spread = std::nan("")}), ::testing::HasSubstr("spread"));
  EXPECT_THAT(refusal({.slow_part = 1.5}), ::testing::HasSubstr("slow_part"));
  EXPECT_THAT(refusal({.slow_factor = 0.5}), ::testing::HasSubstr("slow_factor"));
  EXPECT_THAT(refusal({.slow_factor = std::numeric_limits<double>::infinity()}),
              ::testing::HasSubstr("slow_factor"));
  EXPECT_THAT(refusal({.num_steps = 0}), ::testing::HasSubstr("num_steps"));
}

}  // namespace
}  // namespace trireme::simulate
