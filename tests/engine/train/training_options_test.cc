#include "trireme/engine/train/training_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "trireme/error.h"

namespace trireme::train {
namespace {

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
  EXPECT_THAT(refusal({.momentum = -0.5}), testing::HasSubstr("momentum"));
  EXPECT_THAT(refusal({.weight_decay = nan}), testing::HasSubstr("weight decay"));
  EXPECT_THAT(refusal({.clip_norm = -1}), testing::HasSubstr("clipped"));
  EXPECT_THAT(refusal({.warmup_steps = -1}), testing::HasSubstr("must be 0 or more"));
  EXPECT_THAT(refusal({.beta1 = 1}), testing::HasSubstr("beta1 must be from 0 to below 1, is 1"));
  EXPECT_THAT(refusal({.name = "sgd", .epsilon = 1e-8}), testing::HasSubstr("no beta1, beta2 and"));
}

TEST(TrainingOptions, FactsAreWhatChangesResults) {
  const TrainingOptions options{.seed = 7, .optimizer = {.name = "sgd"}};
  const auto facts = facts_of(options);
  EXPECT_EQ(facts.at("seed"), "7");
  EXPECT_EQ(facts.at("optimizer"), "sgd");
  EXPECT_EQ(facts.at("decay"), "none");
  EXPECT_FALSE(facts.contains("drift_check_steps"));
  EXPECT_FALSE(facts.contains("gradient_dtype")) << "checkpoints from before have none";
  EXPECT_EQ(facts_of({.gradient_dtype = Dtype::kBf16}).at("gradient_dtype"), "bf16");
  EXPECT_THROW(checked_gradient_dtype({.gradient_dtype = Dtype::kF16}), Error);
  EXPECT_FALSE(facts.contains("decay_steps")) << "checkpoints from before have none";
  const TrainingOptions other{.optimizer = {.decay = "cosine",
                                            .decay_steps = 9,
                                            .beta2 = 0.5,
                                            .groups = {{"*.bias", 0.0}, {"e*", {}, 0.5}}}};
  EXPECT_EQ(facts_of(other).at("decay_steps"), "9");
  EXPECT_EQ(facts_of(other).at("beta2"), "0.5");
  EXPECT_EQ(facts_of(other).at("groups"), "*.bias,weight-decay=0.0 e*,rate-scale=0.5");
  EXPECT_THAT(to_text(options), testing::HasSubstr("drift_check_steps 1 10 100 1000\n"));
}

}  // namespace
}  // namespace trireme::train
