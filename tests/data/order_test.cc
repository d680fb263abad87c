#include "trireme/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "trireme/error.h"

namespace trireme::data {
namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < order.num_samples(); ++i) {
    samples.push_back(order.sample_at(epoch * order.num_samples() + i));
  }
  return samples;
}

TEST(SampleOrder, EveryEpochMeetsEverySampleOnce) {
  std::vector<std::int64_t> sizes = {63,   64,   65,   97,   127,  128,
                                     1000, 1009, 4095, 4096, 4097, 10'007};
  for (std::int64_t n = 1; n <= 40; ++n) sizes.push_back(n);
  for (const std::int64_t n : sizes) {
    for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL}) {
      const SampleOrder order(n, seed);
      for (const std::int64_t epoch : {0, 1, 5}) {
        std::vector<std::int64_t> samples = epoch_of(order, epoch);
        std::sort(samples.begin(), samples.end());
        std::vector<std::int64_t> all(n);
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(samples, all) << n << " samples, seed " << seed << ", epoch " << epoch;
      }
    }
  }
}

// Pinned: a change of these numbers changes the results of every training run.
TEST(SampleOrder, KnownAnswers) {
  EXPECT_EQ(epoch_of(SampleOrder(10, 42), 0),
            (std::vector<std::int64_t>{3, 0, 7, 5, 6, 1, 2, 9, 4, 8}));
  EXPECT_EQ(epoch_of(SampleOrder(10, 42), 1),
            (std::vector<std::int64_t>{6, 2, 0, 7, 1, 9, 4, 5, 8, 3}));
  EXPECT_EQ(SampleOrder(1'000'000'007, 7).sample_at(123'456'789), 353'414'707);
  EXPECT_EQ(SampleOrder(std::int64_t{1} << 62, 7).sample_at(5), 4'536'020'351'794'303'862);
}

TEST(SampleOrder, EpochsAndSeedsDiffer) {
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const SampleOrder order(50, seed);
    for (std::int64_t epoch = 0; epoch < 10; ++epoch) orders.insert(epoch_of(order, epoch));
  }
  EXPECT_EQ(orders.size(), 100U);
}

TEST(SampleOrder, EpochsBeginWhereAllSamplesWereMet) {
  const SampleOrder order(3, 9);
  for (std::int64_t index = 0; index < 12; ++index) EXPECT_EQ(order.epoch_at(index), index / 3);
}

TEST(SampleOrder, SequentialGoesInOrder) {
  const SampleOrder order(3, 9, OrderKind::kSequential);
  EXPECT_EQ(epoch_of(order, 0), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(epoch_of(order, 7), (std::vector<std::int64_t>{0, 1, 2}));
}

/// Chi-square of counts against an even spread, in standard deviations from its mean.
double surprise(const std::vector<int>& counts) {
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / counts.size();
  double chi = 0;
  for (const int count : counts) chi += (count - mean) * (count - mean) / mean;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(SampleOrder, IsEvenlySpread) {
  for (const std::int64_t n : {2, 3, 7, 16, 100}) {
    // Where does the first sample land, and who follows whom, over many epochs?
    const SampleOrder order(n, 12345);
    std::vector<int> place(n), step(n);
    for (std::int64_t epoch = 0; epoch < 20'000; ++epoch) {
      ++place[order.sample_at(epoch * n)];
      const std::int64_t first = order.sample_at(epoch * n + n / 2);
      const std::int64_t next = order.sample_at(epoch * n + (n / 2 + 1) % n);
      ++step[(next - first + n) % n];
    }
    EXPECT_LT(std::abs(surprise(place)), 4) << n;
    if (n > 2) {
      step.erase(step.begin());  // a sample does not follow itself
      EXPECT_LT(std::abs(surprise(step)), 4) << n;
    }
  }
}

TEST(SampleOrder, AllOrdersOfFewSamplesOccur) {
  std::vector<int> counts(6);
  const SampleOrder order(3, 99);
  for (std::int64_t epoch = 0; epoch < 12'000; ++epoch) {
    const std::vector<std::int64_t> samples = epoch_of(order, epoch);
    ++counts[samples[0] * 2 + (samples[1] > samples[2] ? 1 : 0)];
  }
  EXPECT_LT(std::abs(surprise(counts)), 4);
}

TEST(SampleOrder, RefusesNonsense) {
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{1} << 62) + 1}) {
    EXPECT_THROW(SampleOrder(n, 0), Error) << n;
  }
  EXPECT_THROW(SampleOrder(3, 0).sample_at(-1), Error);
}

}  // namespace
}  // namespace trireme::data
