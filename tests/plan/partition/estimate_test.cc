#include "trireme/plan/partition/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/graphs/sample_graphs.h"
#include "tests/plans/random_models.h"
#include "trireme/plan/graph/graph_json.h"

namespace trireme::partition {
namespace {

using layout::testing::make_free_profile;
using layout::testing::make_topology;
using layout::testing::Model;
using layout::testing::random_cuts;
using layout::testing::random_model;
using layout::testing::random_topology;

/// A problem and all that it refers to.
struct Case {
  Model model;
  topology::Topology topology;
  PartitionOptions options;
  std::vector<int> cuts, order;

  Problem problem() const {
    return {model.graph,
            model.profile,
            topology,
            options,
            graph::graph_sha256(model.graph),
            static_cast<int>(cuts.size()) + 1,
            {},
            order};
  }
};

/// One of the graphs that hold everything a graph can, with random costs.
Model random_sample(std::mt19937& random) {
  const graph::Graph graph =
      graph::testing::make_random_graph(random(), 4 + static_cast<int>(random() % 20));
  Model model{graph, make_free_profile(graph)};
  model.profile.links = random_model(random, 5).profile.links;
  model.profile.step = {.optimizer_ns = 3, .fold_ns = 200, .copy_ns_per_byte = 10};
  if (random() % 2 == 0) model.profile.step.read_us = static_cast<double>(random() % 9);
  if (random() % 2 == 0) model.profile.step.messages = {{0, 2}, {100, 7}};
  for (profile::NodeCost& cost : model.profile.costs) {
    cost.forward_us = static_cast<double>(random() % 9);
    cost.input_us = static_cast<double>(random() % 9);
    cost.weight_us = static_cast<double>(random() % 9);
    cost.backward_workspace_bytes = static_cast<std::int64_t>(random() % 500);
    if (random() % 2 == 0) cost.saved_outputs = {0};
  }
  return model;
}

/// Ranks of a host share 1 to 3 cores, some of them all of these.
void crowd(std::mt19937& random, topology::Topology& topology) {
  for (topology::Host& host : topology.hosts) host.num_cores = 1 + static_cast<int>(random() % 3);
  for (topology::RankPlace& rank : topology.ranks) {
    const int num_cores = topology.hosts[rank.host].num_cores;
    rank.cores = {static_cast<int>(random() % num_cores)};
    if (random() % 2 == 0) continue;
    rank.cores.resize(num_cores);
    std::iota(rank.cores.begin(), rank.cores.end(), 0);
  }
}

Case random_case(std::mt19937& random) {
  Case one;
  one.model = random() % 3 == 0 ? random_sample(random)
                                : random_model(random, 4 + static_cast<int>(random() % 30));
  one.cuts = random_cuts(random, one.model.graph, 5);
  const int replicas = 1 << random() % 3;
  const int num_microbatches = 1 + static_cast<int>(random() % 9);
  one.options.batch = {replicas * num_microbatches, 1, replicas};
  one.options.replicas = replicas;
  if (random() % 3 == 0) one.options.placement = Placement::kCluster;
  one.options.forecast.program.has_norm = random() % 2 == 0;
  if (random() % 3 == 0) one.options.forecast.memory.gradient_dtype = Dtype::kBf16;
  one.options.schedule = std::array{"simple", "interleaved", "zero_bubble"}[random() % 3];
  const int num_ranks = replicas * (static_cast<int>(one.cuts.size()) + 1);
  one.topology = random_topology(random, num_ranks, 4);
  if (random() % 2 == 0) crowd(random, one.topology);
  if (random() % 2 == 0) {
    for (topology::RankPlace& rank : one.topology.ranks) {
      rank.speed = std::array{0.5, 1.0, 3.0}[random() % 3];
    }
    one.order.resize(num_ranks);
    std::iota(one.order.begin(), one.order.end(), 0);
    std::ranges::shuffle(one.order, random);
  }
  // Of backwards in two parts the estimate takes what is held as if they were whole.
  if (one.options.schedule != "zero_bubble" && random() % 2 == 0)
    one.model.profile.held = profile::HeldTimes{100, 2000, 1.5, 1.25};
  if (random() % 2 == 0) one.model.profile.uncaptured = profile::UncapturedTimes{1.75, 1.5};
  return one;
}

/// The gate: whatever the estimate leaves out, the forecast has it.
TEST(Estimator, IsWhatTheForecastSays) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_copying = 0;
  for (int round = 0; round < 1500; ++round) {
    const Case one = random_case(random);
    const Problem problem = one.problem();
    const Setting setting{one.options.schedule, {}, one.model.graph};
    const Candidate whole = evaluate(problem, setting, one.cuts);
    Estimator estimator(problem, setting);
    EXPECT_TRUE(estimator.is_lean());
    const double expected = whole.forecast.simulation.step_us;
    const double step_us = estimator.step_us(one.cuts);
    EXPECT_NEAR(step_us, expected, 1e-9 * expected);
    EXPECT_EQ(estimator.step_us(one.cuts, step_us), step_us);  // Of no use is what takes longer.
    const double most_us = step_us * 0.125 * static_cast<double>(1 + random() % 7);
    const double too_long = estimator.step_us(one.cuts, most_us);
    EXPECT_GT(too_long, most_us);
    EXPECT_LE(too_long, step_us * (1 + 1e-9));
    const std::vector<std::int64_t> peaks = estimator.peak_bytes(one.cuts);
    for (int s = 0; s < problem.num_stages; ++s) {
      EXPECT_EQ(peaks[s], whole.forecast.memory[problem.rank(s, 0)].total()) << "stage " << s;
      EXPECT_LE(whole.forecast.plan_bound_us, expected * (1 + 1e-9));
      EXPECT_LE(whole.forecast.any_bound_us, expected * (1 + 1e-9));
      num_copying += whole.plan.stages[s].copies.empty() ? 0 : 1;
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(num_copying, 50);
}

/// What is said quickly is on the safe side.
TEST(Estimator, BoundsOfPeaksHold) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_fitting = 0;
  for (int round = 0; round < 300; ++round) {
    const Case one = random_case(random);
    const Problem problem = one.problem();
    const Setting setting{one.options.schedule, {}, one.model.graph};
    Estimator estimator(problem, setting);
    const std::vector<std::int64_t> peaks = estimator.peak_bytes(one.cuts);
    EXPECT_LE(estimator.least_peak_bytes(one.cuts), *std::max_element(peaks.begin(), peaks.end()));
    EXPECT_LE(estimator.least_kept_bytes(one.cuts), estimator.least_peak_bytes(one.cuts));
    std::vector<std::int64_t> limits = peaks;
    for (std::int64_t& limit : limits) limit += static_cast<std::int64_t>(random() % 60'000) - 9000;
    if (!estimator.surely_fits(one.cuts, limits)) continue;
    ++num_fitting;
    for (std::size_t s = 0; s < peaks.size(); ++s) EXPECT_LE(peaks[s], limits[s]);
  }
  EXPECT_GT(num_fitting, 20);
}

/// Cuts are asked for again and again: nothing of one plan is left in the next.
TEST(Estimator, SaysTheSameTwice) {
  std::mt19937 random(3);
  const Case one = random_case(random);
  for (int round = 0; round < 20; ++round) {
    Case two = one;
    do {
      two.cuts = random_cuts(random, one.model.graph, static_cast<int>(one.cuts.size()));
    } while (two.cuts.size() != one.cuts.size());
    const Problem problem = two.problem();
    const Setting setting{one.options.schedule, {}, one.model.graph};
    Estimator used(problem, setting), fresh(problem, setting);
    used.step_us(one.cuts);
    used.peak_bytes(one.cuts);
    EXPECT_EQ(used.step_us(two.cuts), fresh.step_us(two.cuts));
    EXPECT_EQ(used.peak_bytes(two.cuts), fresh.peak_bytes(two.cuts));
  }
}

}  // namespace
}  // namespace trireme::partition
