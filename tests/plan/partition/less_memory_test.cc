#include "trireme/plan/partition/less_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/plan/partition/search_cases.h"
#include "trireme/error.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::partition {
namespace {

/// The least that the fullest rank can have, over all cuts and all choices of stages that recompute.
std::int64_t least_peak(const Problem& problem, const Setting& setting) {
  const std::vector<bool> allowed = graph::allowed_cuts(problem.recorded);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::vector<int> cuts;
  const auto try_flags = [&] {
    for (unsigned flags = 0; flags < 1U << problem.num_stages; ++flags) {
      layout::Plan plan = plan_of(problem, setting, cuts);
      for (int s = 0; s < problem.num_stages; ++s) {
        plan.stages[s].recompute =
            (flags >> s & 1U) != 0 && layout::why_not_recomputed(setting.planned, plan, s).empty();
      }
      least = std::min(
          least, forecast_of(problem, setting.planned, std::move(plan)).forecast.peak_bytes());
    }
  };
  const auto visit = [&](const auto& self, int place) -> void {
    if (static_cast<int>(cuts.size()) + 1 == problem.num_stages) return try_flags();
    for (; place + 1 < static_cast<int>(allowed.size()); ++place) {
      if (!allowed[place]) continue;
      cuts.push_back(place);
      self(self, place + 1);
      cuts.pop_back();
    }
  };
  visit(visit, 1);
  return least;
}

bool has_regions(const layout::Plan& plan) {
  return std::ranges::any_of(plan.stages,
                             [](const layout::Stage& stage) { return !stage.regions.empty(); });
}

bool has_stage_copies(const layout::Plan& plan) {
  return std::ranges::any_of(plan.stages,
                             [](const layout::Stage& stage) { return !stage.copies.empty(); });
}

/// A memory that some plan just fits whose stages are whole: then one is found, though cuts for stages that keep all do not
/// fit. In less memory only plans with regions fit, or with copies in stages that `least_peak` did not choose, if any.
TEST(LessMemory, FindsAPlanWhereOneFits) {
  std::mt19937 random(7);
  int num_cases = 0, num_other_cuts = 0, num_with_regions = 0;
  while (num_cases < 60) {
    testing::SearchCase one = testing::random_search_case(random, 9);
    one.num_stages = std::min(one.num_stages, 3);
    one.options.stages = one.num_stages;
    one.options.replicas = 1;
    one.options.schedule = "interleaved";
    one.options.copied_nodes.emplace();
    one.options.recompute = Recompute::kAuto;
    one.topology.ranks.resize(one.num_stages);
    if (!testing::has_plans(one)) continue;
    ++num_cases;
    SCOPED_TRACE(num_cases);
    const Setting setting{"interleaved", {}, one.model.graph};
    one.options.device_memory_bytes = least_peak(one.problem(), setting);
    const layout::Plan plan =
        partition(one.model.graph, one.model.profile, one.topology, one.options);
    EXPECT_LE(layout::largest_peak_bytes(plan.prediction->peak_bytes),
              one.options.device_memory_bytes);

    PartitionOptions keeps = one.options;
    keeps.device_memory_bytes = std::numeric_limits<std::int64_t>::max();
    keeps.recompute = Recompute::kNone;
    const layout::Plan wide = partition(one.model.graph, one.model.profile, one.topology, keeps);
    const auto begin = [](const layout::Stage& stage) { return stage.begin; };
    num_other_cuts += !std::ranges::equal(plan.stages, wide.stages, {}, begin, begin);

    one.options.device_memory_bytes -= 1;
    try {
      const layout::Plan less =
          partition(one.model.graph, one.model.profile, one.topology, one.options);
      EXPECT_LE(layout::largest_peak_bytes(less.prediction->peak_bytes),
                one.options.device_memory_bytes);
      EXPECT_TRUE(has_regions(less) || has_stage_copies(less));
      num_with_regions += has_regions(less);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::HasSubstr("fits"));
    }
  }
  EXPECT_GT(num_other_cuts, 10);
  EXPECT_GT(num_with_regions, 10);
}

/// Twelve equal nodes whose memory is activations: in four regions far less is held than whole.
TEST(LessMemory, RegionsAreAskedForOrTakenWhereNothingElseFits) {
  testing::SearchCase one;
  one.model =
      layout::testing::make_chain(std::vector<layout::testing::ChainNode>(12, {.width = 1000}));
  one.topology = layout::testing::make_topology(1);
  one.options.batch = {4, 1, 1};
  one.options.stages = one.options.replicas = 1;
  one.options.schedule = "interleaved";
  const auto plan_with = [&](Recompute recompute, std::int64_t memory) {
    one.options.recompute = recompute;
    one.options.device_memory_bytes = memory;
    return partition(one.model.graph, one.model.profile, one.topology, one.options);
  };
  const auto peak = [](const layout::Plan& plan) {
    return layout::largest_peak_bytes(plan.prediction->peak_bytes);
  };
  constexpr std::int64_t kMuch = 1 << 30;
  const layout::Plan whole = plan_with(Recompute::kAll, kMuch);
  const layout::Plan regions = plan_with(Recompute::kRegions, kMuch);
  EXPECT_FALSE(has_regions(whole));
  EXPECT_TRUE(has_regions(regions));
  EXPECT_LT(peak(regions), peak(whole) * 3 / 4);
  EXPECT_EQ(regions.prediction->step_ms, whole.prediction->step_ms);
  EXPECT_FALSE(has_regions(plan_with(Recompute::kAuto, peak(whole))));
  EXPECT_TRUE(has_regions(plan_with(Recompute::kAuto, peak(whole) - 1)));
  EXPECT_LE(peak(plan_with(Recompute::kAuto, peak(whole) - 1)), peak(whole) - 1);
}

/// State that is not even where work is, and activations that fit in regions alone: cuts for whole stages leave too much to
/// one. 2 % less than the objective `memory` finds, which cuts for stages that keep all.
TEST(LessMemory, CutsBalanceTheStateOfStagesWithRegions) {
  constexpr int kNodes = 64, kStages = 4;
  std::mt19937 random(5);
  std::vector<layout::testing::ChainNode> nodes(kNodes);
  for (layout::testing::ChainNode& node : nodes) {
    node.width = random() % 4 == 0 ? 1'000 : 8'000;
    node.elements = random() % 2 == 0 ? 1 : 64'000;
    node.forward_us = 1 + random() % 3;
  }
  testing::SearchCase one;
  one.model = layout::testing::make_chain(nodes);
  one.topology = layout::testing::make_topology(kStages);
  one.num_stages = one.options.stages = kStages;
  one.options.replicas = 1;
  one.options.batch = {8, 1, 1};
  one.options.schedule = "interleaved";
  const auto peak_with = [&](Objective objective, Recompute recompute) {
    one.options.objective = objective;
    one.options.recompute = recompute;
    return layout::largest_peak_bytes(
        partition(one.model.graph, one.model.profile, one.topology, one.options)
            .prediction->peak_bytes);
  };
  one.options.device_memory_bytes = peak_with(Objective::kMemory, Recompute::kRegions) * 98 / 100;
  EXPECT_LE(peak_with(Objective::kSpeed, Recompute::kAuto), one.options.device_memory_bytes);
}

TEST(LessMemory, PrimariesThatAreTheSameButForRoundingLeaveItToTheSecondary) {
  const Score fast{.primary = 404.435520826786, .secondary = 121},
      small{.primary = 404.4355208267861, .secondary = 65};
  EXPECT_TRUE(is_better(small, fast));
  EXPECT_FALSE(is_better(fast, small));
  const Score slower{.primary = 404.5, .secondary = 1};
  EXPECT_FALSE(is_better(slower, fast));
  EXPECT_TRUE(is_better(fast, slower));
  EXPECT_TRUE(is_better(slower, {.excess_bytes = 1}));
  EXPECT_FALSE(is_better(fast, fast));
}

}  // namespace
}  // namespace trireme::partition
