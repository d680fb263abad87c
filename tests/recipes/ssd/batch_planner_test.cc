#include "recipes/ssd/batch_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"

namespace trireme::recipes::ssd {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kCocoImages = 117'266;  // with boxes

std::string refusal(const std::string& text) {
  return test::error_of([&] { compare_batches(kCocoImages, parse_batch_times(text)); }).message();
}

/// 5750, 3770, 2925 and 2610 steps: NVIDIA's table.
TEST(BatchPlanner, StepsAreThePublishedOnes) {
  const auto choices =
      compare_batches(kCocoImages, parse_batch_times("1024=1,2048=1,3072=1,4096=1"));
  std::vector<std::int64_t> steps;
  for (const BatchChoice& choice : choices) steps.push_back(choice.steps);
  EXPECT_THAT(steps, testing::ElementsAre(2610, 2925, 3770, 5750));
}

TEST(BatchPlanner, EpochsGrowWithTheBatch) {
  EXPECT_EQ(epochs_of(1), 50);
  EXPECT_EQ(epochs_of(1024), 50);
  EXPECT_EQ(epochs_of(1536), 57.5);
  EXPECT_EQ(epochs_of(4096), 90);
  for (std::int64_t batch = 1; batch < 4096; ++batch)
    ASSERT_LE(epochs_of(batch), epochs_of(batch + 1)) << batch;
}

/// Steps that take as long as their images: the smallest batch is soonest; with much that does not grow, a large one.
TEST(BatchPlanner, TheShortestTrainingComesFirst) {
  const auto first = [](const std::string& text) {
    return compare_batches(kCocoImages, parse_batch_times(text)).front().batch;
  };
  EXPECT_EQ(first("1024=100,2048=200,4096=400"), 1024);
  EXPECT_EQ(first("1024=100,2048=110,4096=130"), 4096);
  EXPECT_EQ(first("1024=100,2048=120,4096=240"), 2048);
  EXPECT_EQ(first("512=100,256=50"), 256);
}

TEST(BatchPlanner, SaysHowLongEachTakes) {
  const auto choices = compare_batches(1000, parse_batch_times("100=3600.5"));
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].steps, 500);
  EXPECT_DOUBLE_EQ(choices[0].seconds, 500 * 3.6005);
  EXPECT_THAT(to_table(1000, choices), HasSubstr("  100    50.0      500   3600.5     0.50\n"));
}

TEST(BatchPlanner, WhatItRefuses) {
  EXPECT_THAT(refusal("5000=1"), HasSubstr("one of 5000 images trains is known from 1 to 4096"));
  EXPECT_THAT(refusal("0=1"), HasSubstr("one of 0 images"));
  EXPECT_THAT(refusal("10=0"), HasSubstr("a step of 10 images takes 0 s"));
  EXPECT_THAT(refusal("10"), HasSubstr("'10' has ''; give batches with milliseconds"));
  EXPECT_THAT(refusal("a=1"), HasSubstr("has 'a'"));
  EXPECT_THAT(refusal(""), HasSubstr("one batch at least"));
}

}  // namespace
}  // namespace trireme::recipes::ssd
