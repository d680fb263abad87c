#include "trireme/engine/measure/measurement.h"

#include <gtest/gtest.h>

namespace trireme::measure {
namespace {

constexpr RepeatOptions kOptions = {.num_warmups = 2,
                                    .min_repeats = 3,
                                    .max_repeats = 10,
                                    .min_time = std::chrono::microseconds(1000),
                                    .max_time = std::chrono::hours(1)};

/// Repeats that are made where each takes so long.
int num_repeats(const RepeatOptions& options, Microseconds each) {
  Repeats repeats(options);
  while (repeats.is_wanted()) repeats.add(each);
  return static_cast<int>(repeats.times_us().size());
}

TEST(RepeatsTest, AreEnoughByTimeBetweenLeastAndMost) {
  EXPECT_EQ(num_repeats(kOptions, Microseconds(5000)), 3);
  EXPECT_EQ(num_repeats(kOptions, Microseconds(200)), 5);
  EXPECT_EQ(num_repeats(kOptions, Microseconds(1)), 10);
}

TEST(RepeatsTest, EndInTimeOnceTheLeastAreMade) {
  RepeatOptions options = kOptions;
  options.max_time = std::chrono::microseconds(0);
  EXPECT_EQ(num_repeats(options, Microseconds(1)), 3);
}

TEST(RepeatsTest, ADisturbedRunDoesNotCountForMany) {
  Repeats repeats(kOptions);
  for (const double us : {9.0, 9.0, 100.0, 5000.0, 100.0}) repeats.add(Microseconds(us));
  EXPECT_TRUE(repeats.is_wanted());
}

TEST(RepeatsTest, SummaryIsOfTheMiddle) {
  const Timing timing = summary({5, 1, 3, 2, 4});
  EXPECT_EQ(timing.median_us, 3);
  EXPECT_EQ(timing.least_us, 1);
  EXPECT_EQ(timing.spread, 2.0 / 3);
  EXPECT_EQ(summary({}).median_us, 0);
  EXPECT_EQ(median({4, 1}), 2.5);
}

TEST(RepeatsTest, PreparationIsNotMeasured) {
  int num_prepared = 0, num_run = 0;
  const Timing timing = time_repeats(kOptions, [&] { ++num_prepared; }, [&] { ++num_run; });
  EXPECT_EQ(num_prepared, num_run);
  EXPECT_EQ(num_run, 12);
  EXPECT_LT(timing.median_us, 1000);
}

}  // namespace
}  // namespace trireme::measure
