#include "trireme/plan/partition/range_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "tests/plans/random_models.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::partition {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using layout::testing::make_free_profile;
using layout::testing::make_plan;
using layout::testing::Model;
using layout::testing::random_cuts;
using layout::testing::random_model;

bool sends_once(const graph::Graph& graph, const layout::Plan& plan) {
  for (const layout::Crossing& crossing : layout::crossings(graph, plan)) {
    if (crossing.stages.size() > 2) return false;
  }
  return true;
}

TEST(RangeCost, IsWhatTheForecastSaysOfAFinishedPlan) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    const Model model = random_model(random, 4 + static_cast<int>(random() % 20));
    const layout::Plan plan =
        make_plan(model.graph, {random_cuts(random, model.graph, 4), 3, 1, "simple"});
    const auto map = layout::make_parameter_map(model.graph, plan);
    const auto costs = simulate::stage_costs(model.graph, plan, model.profile);
    const auto tensors = simulate::stage_tensors(model.graph, plan, model.profile);
    const auto memory = simulate::rank_memory(model.graph, plan, map, tensors, {});
    RangeCost range(model.graph, model.profile,
                    {.num_microbatches = 3, .in_flight = std::vector<int>(plan.stages.size(), 3)},
                    RangeGoal::kTime);
    for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
      range.begin(plan.stages[s].begin);
      for (int p = plan.stages[s].begin; p < plan.stages[s].end; ++p) range.extend();
      const simulate::StageCost cost = range.cost();
      const simulate::RankMemory expected = memory[s], actual = range.memory(s);
      EXPECT_EQ(cost.forward_us, costs[s].forward_us);
      EXPECT_NEAR(cost.backward_us(), costs[s].backward_us(), 1e-9);
      EXPECT_EQ(cost.received_bytes, costs[s].received_bytes);
      if (sends_once(model.graph, plan)) {
        EXPECT_EQ(cost.sent_bytes, costs[s].sent_bytes);
        EXPECT_NEAR(cost.work_us(), costs[s].work_us(), 1e-9);
      }
      EXPECT_EQ(actual.parameters, expected.parameters);
      EXPECT_EQ(actual.gradients, expected.gradients);
      EXPECT_EQ(actual.optimizer, expected.optimizer);
      EXPECT_EQ(actual.activations, expected.activations);
      EXPECT_GE(actual.transient, expected.transient);
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

/// The least largest cost of `num_stages` ranges from `begin` on, every partition tried, each range
/// priced by itself; infinity where none is within the limit.
double exhaustive(RangeCost& range, const std::vector<bool>& allowed, double limit, int begin,
                  int stage, int num_stages) {
  const int size = static_cast<int>(allowed.size()) - 1;
  const bool is_last = stage + 1 == num_stages;
  double best = std::numeric_limits<double>::infinity();
  for (int end = is_last ? size : begin + 1; end <= size; ++end) {
    if (!is_last && (end == size || !allowed[end])) continue;
    range.begin(begin);
    for (int p = begin; p < end; ++p) range.extend();
    const RangePrice price = range.price(stage);
    if (price.bound > limit) continue;
    const double rest = is_last ? 0 : exhaustive(range, allowed, limit, end, stage + 1, num_stages);
    best = std::min(best, std::max(price.cost, rest));
  }
  return best;
}

/// Graphs with parameters that several nodes use, cuts that are not allowed, and a memory cap.
TEST(RangeCost, TheBestPartitionWithTiesIsFound) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_found = 0;
  for (int round = 0; round < 3000; ++round) {
    const Model model = random_model(random, 4 + static_cast<int>(random() % 11));
    const int num_stages = 2 + static_cast<int>(random() % 3);
    const bool is_memory = random() % 2 == 0;
    RangeCost range(
        model.graph, model.profile,
        {.num_microbatches = 3, .in_flight = std::vector<int>(num_stages, 1 + random() % 4)},
        is_memory ? RangeGoal::kMemory : RangeGoal::kTime);
    const double least = is_memory ? 10 : 500, spread = is_memory ? 300 : 3000;
    const double limit = random() % 2 == 0 ? least + std::fmod(random(), spread) : 1e9;
    const std::vector<bool> allowed = graph::allowed_cuts(model.graph);
    const auto found = cut_chain(range, {allowed, {}, std::vector<double>(num_stages, limit)});
    const double best = exhaustive(range, allowed, limit, 0, 0, num_stages);
    EXPECT_EQ(found ? found->cost : std::numeric_limits<double>::infinity(), best);
    num_found += found ? 1 : 0;
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(num_found, 500);
}

/// Numbers of storages are names: a table by them would take 40 GB here.
TEST(RangeCost, AHighStorageNumberTakesNoMemory) {
  layout::testing::Model model = layout::testing::make_chain({{}, {}, {}});
  const auto bytes = [&] {
    RangeCost range(model.graph, model.profile, {.in_flight = {1}}, RangeGoal::kTime);
    range.begin(0);
    for (std::size_t p = 0; p < model.graph.nodes.size(); ++p) range.extend();
    return range.bytes(0);
  };
  const std::int64_t before = bytes();
  model.graph.values[model.graph.nodes[1].outputs[0]].storage_id = 1 << 30;
  EXPECT_EQ(bytes(), before);
}

TEST(RangeCost, AMirrorCostsItsMessages) {
  GraphBuilder b;
  const ValueId p = b.parameter("p", {100});
  ValueId h = b.node("mul", {b.input("x", {1}), p}, b.batch({1}));
  h = b.node("relu", {h}, b.batch({1}));
  b.loss(b.node("mul", {h, p}, b.batch({1})));
  profile::Profile profile = make_free_profile(b.graph());
  profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {400, 40, 40}}}};
  RangeCost range(b.graph(), profile, {.num_microbatches = 4, .in_flight = {1, 1}},
                  RangeGoal::kTime);
  range.begin(0);
  range.extend();
  EXPECT_EQ(range.memory(0).optimizer, 112 * 8);  // 100 elements, aligned to 64 bytes.
  EXPECT_EQ(range.time_us(0), 0.4);               // The gradient of its output.
  range.begin(2);
  range.extend();
  EXPECT_EQ(range.memory(1).optimizer, 0);
  EXPECT_EQ(range.memory(1).parameters, 112 * 4);
  EXPECT_EQ(range.time_us(1), 0.4 + (40 + 40) / 4.0);
}

}  // namespace
}  // namespace trireme::partition
