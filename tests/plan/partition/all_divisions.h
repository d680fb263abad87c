#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/rank_divisions.h"

namespace trireme::partition::testing {

/// All divisions, cuts and schedules, forecast one by one; what `partition` finds with as many ranks everywhere too.
inline double exhaustive_ms(const SearchCase& one, double even_ms) {
  double best = even_ms;
  std::vector<int> places;
  const std::vector<bool> allowed = graph::allowed_cuts(one.model.graph);
  for (int c = 1; c + 1 < static_cast<int>(allowed.size()); ++c) {
    if (allowed[c]) places.push_back(c);
  }
  const auto most_positions = static_cast<int>(places.size()) + 1;
  for (int ranks = 3; ranks <= static_cast<int>(one.topology.ranks.size()); ++ranks) {
    for (const RanksByPosition& division : uneven_divisions(one.options, ranks, most_positions)) {
      PartitionOptions options = one.options;
      options.replicas = std::ranges::max(division);
      Problem problem{one.model.graph,
                      one.model.profile,
                      one.topology,
                      options,
                      graph::graph_sha256(one.model.graph),
                      static_cast<int>(division.size())};
      int rank = 0;
      for (const int num : division) {
        for (int i = 0; i < num; ++i, ++rank) {
          problem.placement.insert(problem.placement.end(), options.replicas / num, rank);
        }
      }
      best = std::min(best, Exhaustive(problem).best({}).primary / 1000);
    }
  }
  return best;
}

/// Plans random problems, which are to be near the best of all divisions. Returns   how many plans have different
/// numbers of ranks.
inline int expect_near_the_best(std::mt19937& random, int num_problems) {
  Gaps gaps;
  int num_uneven = 0;
  for (int i = 0; i < num_problems; ++i) {
    SearchCase one = random_search_case(random, 9);
    one.topology = layout::testing::make_topology(3 + i % 3);
    one.options.replicas = one.options.stages = 0;
    one.options.batch = {4 * (1 + static_cast<int>(random() % 6)), 1, 4};
    one.options.may_idle = true;
    const auto partitioned = [&] {
      return partition_over_replicas(one.model.graph, one.model.profile, one.topology, one.options);
    };
    const double even_ms = partitioned().prediction->step_ms;
    one.options.may_join = true;
    const layout::Plan plan = partitioned();
    layout::check(plan, plan.graph_sha256, layout::planned_graph(one.model.graph, plan));
    EXPECT_LE(plan.prediction->step_ms, even_ms) << i;
    gaps.add(plan.prediction->step_ms, exhaustive_ms(one, even_ms));
    num_uneven += plan.roles[0].is_even() ? 0 : 1;
  }
  EXPECT_LT(gaps.mean(), 0.001);
  EXPECT_LT(gaps.worst, 0.03);
  std::printf("%d planned: %.4f %% above the best of all divisions on average, %.2f %% at worst\n",
              gaps.num_cases, 100 * gaps.mean(), 100 * gaps.worst);
  return num_uneven;
}

}  // namespace trireme::partition::testing
