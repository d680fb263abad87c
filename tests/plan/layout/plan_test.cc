#include "trireme/plan/layout/plan.h"

#include <gtest/gtest.h>

#include <limits>

namespace trireme::layout {
namespace {

TEST(LargestPeak, IsTheSumOfOneRank) {
  EXPECT_EQ(largest_peak_bytes({}), 0);
  EXPECT_EQ(largest_peak_bytes({{}}), 0);
  EXPECT_EQ(largest_peak_bytes({{{"a", 5}, {"b", 2}}, {{"a", 6}}}), 7);
}

TEST(LargestPeak, DoesNotOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(largest_peak_bytes({{{"a", kMax}, {"b", 1}}}), kMax);
}

}  // namespace
}  // namespace trireme::layout
