#include "trireme/engine/train/training_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "trireme/error.h"

namespace trireme::train {
namespace {

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
  options.decay = "linear";
  EXPECT_THROW(learning_rate_at(options, 3), Error);
}

TEST(MakeOptimizer, RefusesNumbersThatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refusal = [](const OptimizerOptions& options) -> std::string {
    try {
      make_optimizer(options);
      return "none";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(refusal({}), "none");
  EXPECT_EQ(refusal({.learning_rate = nan}),
            "the learning rate must be a number from 0 to 3.4e38, is nan");
  EXPECT_THAT(refusal({.warmup_steps = -1}), testing::HasSubstr("warm-up steps must be 0 or more"));
  EXPECT_THAT(refusal({.momentum = -0.5}), testing::HasSubstr("momentum"));
  EXPECT_THAT(refusal({.weight_decay = nan}), testing::HasSubstr("weight decay"));
  EXPECT_THAT(refusal({.clip_norm = -1}), testing::HasSubstr("clipped"));
  EXPECT_EQ(refusal({.warmup_steps = 100, .decay = "cosine"}),
            "no decay is called 'cosine'; there are none and inverse_sqrt");
}

TEST(TrainingOptions, FactsAreWhatChangesResults) {
  const TrainingOptions options{.seed = 7, .optimizer = {.name = "sgd"}};
  const auto facts = facts_of(options);
  EXPECT_EQ(facts.at("seed"), "7");
  EXPECT_EQ(facts.at("optimizer"), "sgd");
  EXPECT_EQ(facts.at("decay"), "none");
  EXPECT_FALSE(facts.contains("drift_check_steps"));
  EXPECT_THAT(to_text(options), testing::HasSubstr("drift_check_steps 1 10 100 1000\n"));
}

}  // namespace
}  // namespace trireme::train
