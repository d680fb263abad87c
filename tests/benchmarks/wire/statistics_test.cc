#include "benchmarks/wire/statistics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace trireme::bench {
namespace {

TEST(BenchStatistics, Quantiles) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1);  // 100 .. 1
  EXPECT_EQ(quantile(values, 0.5), 50);
  EXPECT_EQ(quantile(values, 0.95), 95);
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 100);
  EXPECT_EQ(quantile({7}, 0.95), 7);
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(BenchStatistics, GeometricMean) {
  const std::vector<double> values = {1, 10, 100};
  EXPECT_NEAR(geometric_mean(values), 10, 1e-12);
  EXPECT_TRUE(std::isnan(geometric_mean({})));
}

TEST(BenchStatistics, LargestByPosition) {
  const std::vector<std::vector<double>> lists = {{1, 5, 2}, {3, 4, 2}};
  EXPECT_THAT(largest(lists), testing::ElementsAre(3, 5, 2));
  EXPECT_TRUE(largest({}).empty());
}

}  // namespace
}  // namespace trireme::bench
