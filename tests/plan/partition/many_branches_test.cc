#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/plan/partition/all_orders.h"

namespace trireme::partition {
namespace {

TEST(ManyBranches, PlansComeCloseToTheBestOfAllOrders) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps recorded, plans;
  testing::add_orders(random, 10, 300, recorded, plans);
  for (const auto& [what, gaps] :
       {std::pair("recorded order", recorded), std::pair("any", plans)}) {
    std::printf(
        "%-14s %d planned: %.3f %% above the best of all orders on average, %.2f %% at worst\n",
        what, gaps.num_cases, 100 * gaps.mean(), 100 * gaps.worst);
  }
  EXPECT_LE(plans.mean(), 0.01);
  EXPECT_LT(plans.mean(), 0.1 * recorded.mean());
}

}  // namespace
}  // namespace trireme::partition
