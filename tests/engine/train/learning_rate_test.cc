#include "trireme/engine/train/learning_rate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "tests/base/error_of.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;
using trireme::test::error_of;

TEST(LearningRate, WarmsUpThenStaysOrFalls) {
  OptimizerOptions options{.learning_rate = 0.5, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 0), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 2), 0.375);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 3), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1000), 0.5);
  options.decay = "inverse_sqrt";
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 0), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 3), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 15), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 399), 0.05);
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 3), 0.25);
}

TEST(LearningRate, FallsToWhatIsLeftByTheLastStep) {
  OptimizerOptions options{
      .learning_rate = 2, .warmup_steps = 2, .decay = "linear", .hold_steps = 3, .decay_steps = 15};
  check_schedule(options);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1), 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 5), 2);  // held until here
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10), 1);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 14), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 15), 0);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 99), 0);
  options.final_rate = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 99), 1);
  options.decay = "polynomial";
  options.decay_power = 2;
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10), 1 + 0.25);
  options.decay = "cosine";
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 8), 1 + (1 + std::cos(0.3 * std::numbers::pi)) / 2);
}

TEST(LearningRate, IsWhatTheCallersScheduleSays) {
  OptimizerOptions options{.learning_rate = 2};
  options.rate_schedule = [](std::int64_t step) { return step == 7 ? -1.0 : 1.0 / (step + 1); };
  check_schedule(options);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 3), 0.5);
  EXPECT_THAT(error_of([&] { learning_rate_at(options, 7); }).message(),
              HasSubstr("gives -1.000000 for step 7"));
}

TEST(LearningRate, SchedulesThatCannotBeAreRefused) {
  const auto refusal = [](const OptimizerOptions& options) {
    return error_of([&] { check_schedule(options); }).message();
  };
  EXPECT_THAT(refusal({.decay = "step"}),
              HasSubstr("there are none, inverse_sqrt, linear, cosine"));
  EXPECT_THAT(refusal({.warmup_steps = 10, .decay = "cosine", .decay_steps = 10}),
              HasSubstr("give --decay-steps"));
  EXPECT_THAT(refusal({.decay = "none", .hold_steps = 3}), HasSubstr("holds no rate"));
  EXPECT_THAT(refusal({.decay = "linear", .decay_steps = 9, .final_rate = 2}),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal({.decay = "polynomial", .decay_steps = 9, .decay_power = 0}),
              HasSubstr("power of a decay must be positive"));
  OptimizerOptions both{.warmup_steps = 3};
  both.rate_schedule = [](std::int64_t) { return 1.0; };
  EXPECT_THAT(refusal(both), HasSubstr("leave out decay and warm-up"));
}

}  // namespace
}  // namespace trireme::train
