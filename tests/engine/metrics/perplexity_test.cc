#include <torch/torch.h>

#include <cmath>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::HasSubstr;

MakeMetric perplexity_of(const PerplexityOptions& options = {}) {
  return [options] { return perplexity(options); };
}

/// Probabilities 1/2, 1/4 and 1/8 of the tokens that count: exp of the mean of 1, 2 and 3 ln 2 is 4.
TEST(Perplexity, IsTheMeanBranching) {
  const auto probabilities =
      torch::tensor({0.5, 0.5, 0.25, 0.75, 0.125, 0.875, 0.5, 0.5}).view({2, 2, 2});
  const auto labels = torch::tensor({0, 0, 0, -100}).view({2, 2});
  const auto scores = probabilities.log() + 3;
  const Results found = measured(perplexity_of(), {{"scores", scores}, {"labels", labels}});
  EXPECT_NEAR(found.at("perplexity"), 4, 4e-7);
  const auto losses = torch::tensor({1.0, 2.0, 3.0, 7.0}).view({2, 2}) * std::log(2.0);
  const Results by_losses = measured(perplexity_of({.losses = "losses", .name = "of losses"}),
                                     {{"losses", losses.to(torch::kDouble)}, {"labels", labels}});
  EXPECT_NEAR(by_losses.at("of losses"), 4, 1e-6);
}

TEST(Perplexity, WithoutTokensAndBeyondAllBounds) {
  const auto none = torch::full({2, 2}, -100);
  EXPECT_TRUE(
      std::isnan(measured(perplexity_of(), {{"scores", torch::rand({2, 2, 5})}, {"labels", none}})
                     .at("perplexity")));
  EXPECT_TRUE(std::isnan(measured(perplexity_of(), {{"scores", torch::empty({0, 2, 5})},
                                                    {"labels", torch::empty({0, 2}, torch::kLong)}})
                             .at("perplexity")));
  const auto far = torch::tensor({0.0, 1000.0}).view({1, 1, 2});
  EXPECT_EQ(
      measured(perplexity_of(), {{"scores", far}, {"labels", torch::zeros({1, 1}, torch::kLong)}})
          .at("perplexity"),
      std::numeric_limits<double>::infinity());
}

TEST(Perplexity, WhatItRefuses) {
  const auto scores = torch::rand({2, 2, 3});
  EXPECT_THAT(refusal(perplexity_of(),
                      {{"scores", scores}, {"labels", torch::tensor({0, 3, 0, 0}).view({2, 2})}}),
              HasSubstr("'labels' has label 3; there are classes 0 to 2"));
  EXPECT_THAT(refusal(perplexity_of(), {{"scores", scores}, {"labels", torch::tensor({0, 1})}}),
              HasSubstr("give floats, scores [samples, tokens, vocabulary] or losses"));
  EXPECT_THAT(refusal(perplexity_of({.losses = "scores"}),
                      {{"scores", scores}, {"labels", torch::zeros({2, 2}, torch::kLong)}}),
              HasSubstr("shape [2, 2, 3] and 'labels' [2, 2]"));
}

}  // namespace
}  // namespace trireme::metrics
