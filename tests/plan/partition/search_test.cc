#include "trireme/plan/partition/search.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/partition/range_cost.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

/// Step of the best of all partitions.
double exhaustive(const Problem& problem, const Setting& setting, std::vector<int>& cuts) {
  const int num_nodes = static_cast<int>(setting.planned.nodes.size());
  if (static_cast<int>(cuts.size()) + 1 == problem.num_stages) {
    return evaluate(problem, setting, cuts).forecast.simulation.step_us;
  }
  double best = std::numeric_limits<double>::infinity();
  for (int cut = cuts.empty() ? 1 : cuts.back() + 1; cut < num_nodes; ++cut) {
    cuts.push_back(cut);
    best = std::min(best, exhaustive(problem, setting, cuts));
    cuts.pop_back();
  }
  return best;
}

/// Step of the DP's cuts.
double without_moves(const Problem& problem, const Setting& setting) {
  RangeCost ranges(setting.planned, problem.profile, {.in_flight = {3, 2, 1}}, RangeGoal::kTime);
  const ChainRules rules{graph::allowed_cuts(setting.planned), {}, {1e18, 1e18, 1e18}};
  const std::vector<int> cuts = cut_chain(ranges, rules)->cuts;
  return evaluate(problem, setting, cuts).forecast.simulation.step_us;
}

/// Random chains at m = p, where the least slowest stage is often not the least step.
TEST(Search, ComesCloseToTheExhaustiveOptimum) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<double>(random() % count); };
  int num_optimal = 0;
  double sum_of_gaps = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ChainNode> nodes(9);
    for (ChainNode& node : nodes) node = {1 + pick(20), 1 + pick(20), pick(20), 1, 1};
    const Model model = make_chain(nodes);
    const topology::Topology topology = make_topology(3);
    const PartitionOptions options{.batch = {3, 1, 1}};
    const Problem problem{
        model.graph, model.profile, topology, options, graph::graph_sha256(model.graph), 3};
    const Setting setting{"interleaved", {}, model.graph};
    const Candidate found = *Search(problem, setting).find({});
    EXPECT_LE(found.forecast.simulation.step_us, without_moves(problem, setting));
    std::vector<int> cuts;
    const double best = exhaustive(problem, setting, cuts);
    const double gap = found.forecast.simulation.step_us / best - 1;
    EXPECT_GE(gap, -1e-9);
    EXPECT_LE(gap, 0.2);
    sum_of_gaps += gap;
    num_optimal += gap <= 1e-9 ? 1 : 0;
  }
  EXPECT_GE(num_optimal, kRounds * 3 / 4);
  EXPECT_LE(sum_of_gaps / kRounds, 0.02);
}

TEST(Search, FindsNothingWithoutCuts) {
  const Model model = make_chain({{}});  // A node and the loss: one cut.
  const topology::Topology topology = make_topology(3);
  const PartitionOptions options{.batch = {3, 1, 1}};
  const Problem problem{model.graph, model.profile, topology, options, "hash", 3};
  EXPECT_FALSE(Search(problem, {"simple", {}, model.graph}).find({}).has_value());
}

}  // namespace
}  // namespace trireme::partition
