#include "packs/ranking/metrics/log_loss.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::HasSubstr;

Results loss_of(const torch::Tensor& probabilities, const torch::Tensor& labels) {
  return measured([] { return log_loss(); },
                  {{"probabilities", probabilities}, {"labels", labels}});
}

TEST(LogLossMetric, IsTheMeanLogarithm) {
  const double expected = -(std::log(0.25) + std::log(0.5) + std::log(0.75)) / 3;
  EXPECT_NEAR(loss_of(torch::tensor({0.25, 0.5, 0.25}), torch::tensor({1, 0, 0})).at("log_loss"),
              expected, 1e-15);
  const auto classes = torch::tensor({{0.25, 0.25, 0.5}, {0.5, 0.5, 0.0}, {0.0, 0.25, 0.75}});
  EXPECT_NEAR(loss_of(classes, torch::tensor({0, 1, 2})).at("log_loss"), expected, 1e-15);
  const auto rounded = classes.to(torch::kBFloat16) * 1.01;  // as a softmax in bf16 leaves them
  EXPECT_NEAR(loss_of(rounded, torch::tensor({0, 1, 2})).at("log_loss"), expected, 0.01);
}

TEST(LogLossMetric, IsClippedByTheTypesEpsilon) {
  const auto certain = torch::tensor({{1.0, 0.0}}, torch::kDouble);
  EXPECT_NEAR(loss_of(certain, torch::tensor({1})).at("log_loss"), 52 * std::log(2.0), 1e-13);
  EXPECT_NEAR(loss_of(torch::tensor({0.0F}), torch::tensor({1})).at("log_loss"), 23 * std::log(2.0),
              1e-13);
}

/// More than two of its blocks, however they come.
TEST(LogLossMetric, HasTheBitsOfAllSamplesAtOnce) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const auto probabilities = torch::rand({10000}, generator);
  const auto labels = torch::randint(0, 2, {10000}, generator, torch::kLong);
  const auto bytes = labels.to(torch::kByte);
  const auto of_all = ranking::log_loss(std::span(probabilities.const_data_ptr<float>(), 10000),
                                        std::span(bytes.const_data_ptr<std::uint8_t>(), 10000));
  const MakeMetric make = [] { return log_loss(); };
  for (const std::int64_t at_once : {10000, 4096, 999}) {
    EXPECT_EQ(measured_by(make, {{"probabilities", probabilities}, {"labels", labels}}, at_once)
                  .at("log_loss"),
              of_all.mean());
  }
}

TEST(LogLossMetric, WithoutSamples) {
  const auto labels = torch::empty({0}, torch::kLong);
  EXPECT_TRUE(std::isnan(loss_of(torch::empty({0, 2}), labels).at("log_loss")));
  EXPECT_TRUE(std::isnan(loss_of(torch::empty({0}), labels).at("log_loss")));
}

TEST(LogLossMetric, WhatItRefuses) {
  const auto said = [](const torch::Tensor& probabilities, const torch::Tensor& labels) {
    return refusal([] { return log_loss(); },
                   {{"probabilities", probabilities}, {"labels", labels}});
  };
  const double nan = std::nan("");
  EXPECT_THAT(said(torch::tensor({0.5, 1.5}), torch::tensor({0, 1})),
              HasSubstr("'probabilities' has a probability of 1.5, expected 0 to 1"));
  EXPECT_THAT(said(torch::tensor({0.5, nan}), torch::tensor({0, 1})), HasSubstr("of nan"));
  EXPECT_THAT(said(torch::tensor({{1.0, 2.0}}), torch::tensor({0})),
              HasSubstr("of sum 3, the least of them 1; give them after a softmax"));
  EXPECT_THAT(said(torch::tensor({{nan, 1.0}}), torch::tensor({0})), HasSubstr("after a softmax"));
  EXPECT_THAT(said(torch::tensor({0.5}), torch::tensor({2})), HasSubstr("has label 2"));
  EXPECT_THAT(said(torch::tensor({0.5}), torch::tensor({0.5})), HasSubstr("not whole"));
  EXPECT_THAT(said(torch::tensor({{0.5, 0.5}}), torch::tensor({2})), HasSubstr("has label 2"));
  EXPECT_THAT(said(torch::tensor({{0.5, 0.5}}), torch::tensor({{0}})),
              HasSubstr("labels [samples]"));
}

}  // namespace
}  // namespace trireme::metrics
