#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/plan/partition/all_orders.h"

namespace trireme::partition {
namespace {

void expect_close_to_the_best(int max_nodes, int max_stages, int num_problems) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps recorded, plans;
  testing::add_orders(random, max_nodes, max_stages, num_problems, recorded, plans);
  for (const auto& [what, gaps] :
       {std::pair("recorded order", recorded), std::pair("any", plans)}) {
    std::printf(
        "%-14s %d planned: %.3f %% above the best of all orders on average, %.2f %% at worst\n",
        what, gaps.num_cases, 100 * gaps.mean(), 100 * gaps.worst);
  }
  EXPECT_LE(plans.mean(), 0.01);
  EXPECT_LT(plans.mean(), 0.1 * recorded.mean());
}

TEST(ManyBranches, PlansComeCloseToTheBestOfAllOrders) { expect_close_to_the_best(10, 3, 300); }

TEST(ManyBranches, FourStagesDoToo) { expect_close_to_the_best(14, 4, 60); }

}  // namespace
}  // namespace trireme::partition
