#include "trireme/plan/analytic/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

/// The share of time that lasts, played failure by failure.
double played(const Failures& failures, double mtbf_s, double progress_s, unsigned seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> lifetime(1 / mtbf_s);
  double now = 0, done = 0, next_failure = lifetime(random);
  const auto runs_for = [&](double seconds) {
    const bool survives = now + seconds <= next_failure;
    now = survives ? now + seconds : next_failure;
    if (!survives) next_failure = now + lifetime(random);
    return survives;
  };
  while (done < progress_s) {
    if (runs_for(failures.interval_s + failures.checkpoint_s)) {
      done += failures.interval_s;
    } else {
      while (!runs_for(failures.restart_s)) continue;
    }
  }
  return done / now;
}

TEST(Goodput, IsThatOfATrainingPlayedFailureByFailure) {
  for (const double interval : {500.0, 2000.0, 9000.0}) {
    const Failures failures{
        .host_mtbf_s = 64 * 10000.0, .checkpoint_s = 100, .restart_s = 700, .interval_s = interval};
    const Goodput result = goodput(failures, 64);
    EXPECT_DOUBLE_EQ(result.mtbf_s, 10000);
    // 20,000 failures: the mean of their losses is known to about 1 in 140.
    const double part = played(failures, result.mtbf_s, 2e8, 3);
    EXPECT_NEAR((1 - result.part) / (1 - part), 1, 0.02) << interval;
  }
}

TEST(Goodput, OfHostsThatHardlyFailIsThatOfCheckpoints) {
  const Failures failures{
      .host_mtbf_s = 1e12, .checkpoint_s = 10, .restart_s = 600, .interval_s = 90};
  EXPECT_NEAR(goodput(failures, 1).part, 0.9, 1e-6);
}

TEST(Goodput, OfHostsThatFailBeforeACheckpointIsNothing) {
  const Goodput result = goodput({.host_mtbf_s = 1, .interval_s = 1e6}, 1);
  EXPECT_EQ(result.part, 0);
}

/// Young's square root and the next terms of Daly's series.
TEST(BestInterval, IsThatOfTheSeriesWhereCheckpointsAreShort) {
  for (const double checkpoint : {0.01, 1.0, 30.0}) {
    const double mtbf = 10000, x = checkpoint / (2 * mtbf);
    const double young = std::sqrt(2 * checkpoint * mtbf);
    const double best = best_interval_s(mtbf, checkpoint);
    EXPECT_NEAR(best / (young - checkpoint), 1, 0.03);
    EXPECT_NEAR(best / (young * (1 + std::sqrt(x) / 3 + x / 9) - checkpoint), 1, 1e-5);
  }
}

TEST(BestInterval, NoOtherLeavesMore) {
  for (const double checkpoint : {1.0, 100.0, 20000.0, 1e6}) {
    const Failures best{.host_mtbf_s = 10000, .checkpoint_s = checkpoint};
    const Goodput result = goodput(best, 1);
    EXPECT_LT(result.interval_s, 10000);
    for (const double factor : {0.5, 0.99, 1.01, 2.0}) {
      Failures other = best;
      other.interval_s = factor * result.interval_s;
      EXPECT_LT(goodput(other, 1).part, result.part) << checkpoint << " x " << factor;
    }
  }
}

TEST(Goodput, WhatIsNoTimeIsRefused) {
  const auto refusal = [](const Failures& failures, std::int64_t num_hosts = 1) {
    try {
      goodput(failures, num_hosts);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return std::string(error.message());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({}), "host_mtbf_s must be a number of seconds above 0, got 0");
  EXPECT_EQ(refusal({.host_mtbf_s = 1, .checkpoint_s = 0}),
            "checkpoint_s must be a number of seconds above 0, got 0");
  EXPECT_EQ(refusal({.host_mtbf_s = 1, .restart_s = -1}),
            "restart_s must be a number of seconds, 0 or more, got -1");
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal({.host_mtbf_s = infinite}), ::testing::HasSubstr("got inf"));
  EXPECT_THAT(refusal({.host_mtbf_s = 1, .interval_s = std::nan("")}),
              ::testing::HasSubstr("interval_s must be"));
  EXPECT_EQ(refusal({.host_mtbf_s = 1}, 0), "num_hosts must be at least 1, got 0");
}

}  // namespace
}  // namespace trireme::analytic
