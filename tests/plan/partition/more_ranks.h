#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

#include "tests/plan/partition/search_cases.h"
#include "trireme/error.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition::testing {

/// Step of the plan for the first ranks; infinity where none fits.
inline double step_ms(const SearchCase& one, int num_ranks) {
  topology::Topology topology = one.topology;
  topology.ranks.resize(num_ranks);
  try {
    return partition_over_replicas(one.model.graph, one.model.profile, topology, one.options)
        .prediction->step_ms;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted) << error.message();
    return std::numeric_limits<double>::infinity();
  }
}

/// Ranks on 1 to 4 machines with memory of their own, replicas for some lanes; half of them may recompute.
inline SearchCase random_ranks_case(std::mt19937& random, int max_nodes, int num_ranks) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  SearchCase one = random_search_case(random, max_nodes);
  const std::int64_t lanes = std::int64_t{1} << pick(3);
  one.options.batch = {lanes * (1 + pick(4)), 1, lanes};
  one.options.replicas = one.options.stages = 0;
  one.options.may_idle = true;
  one.options.may_join = pick(2) == 0;
  one.options.may_copy = pick(2) == 0;
  one.options.may_reorder = num_ranks <= 5 && pick(4) == 0;
  one.topology = layout::testing::random_topology(random, num_ranks, 4);
  const double peak = static_cast<double>(layout::largest_peak_bytes(
      partition_over_replicas(one.model.graph, one.model.profile, one.topology, one.options)
          .prediction->peak_bytes));
  if (pick(2) == 0) one.options.recompute = Recompute::kAuto;
  if (pick(2) == 0) one.options.effort = 0.5;
  for (topology::RankPlace& rank : one.topology.ranks) {
    rank.memory_bytes = static_cast<std::int64_t>(peak * (0.3 + 0.1 * pick(16)));
  }
  return one;
}

/// Returns how often a rank more made a step shorter.
inline int expect_no_slower(std::mt19937& random, int max_nodes, int num_ranks, int num_rounds) {
  int num_gains = 0;
  for (int round = 0; round < num_rounds; ++round) {
    const SearchCase one = random_ranks_case(random, max_nodes, num_ranks);
    double before = step_ms(one, 1);
    for (int ranks = 2; ranks <= num_ranks; ++ranks) {
      const double now = step_ms(one, ranks);
      EXPECT_LE(now, before * (1 + 1e-9)) << "round " << round << ", " << ranks << " ranks";
      num_gains += now < before ? 1 : 0;
      before = now;
    }
  }
  return num_gains;
}

}  // namespace trireme::partition::testing
