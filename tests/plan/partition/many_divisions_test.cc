#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/plan/partition/all_divisions.h"

namespace trireme::partition {
namespace {

TEST(ManyDivisions, PlansAreNearTheBestOfAll) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  EXPECT_GT(testing::expect_near_the_best(random, 320), 32);
}

}  // namespace
}  // namespace trireme::partition
