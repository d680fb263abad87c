#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

MakeMetric auc_of(const RocAucOptions& options = {}) {
  return [options] { return roc_auc(options); };
}

/// All pairs of a positive and a negative, ties by halves.
double by_pairs(const torch::Tensor& scores, const torch::Tensor& labels) {
  const auto positives = scores.masked_select(labels.eq(1)).unsqueeze(1);
  const auto negatives = scores.masked_select(labels.eq(0)).unsqueeze(0);
  const auto twice = positives.gt(negatives).sum() * 2 + positives.eq(negatives).sum();
  return twice.item<double>() / (2.0 * static_cast<double>(positives.numel() * negatives.numel()));
}

TEST(RocAuc, OfPairsThatAreCountedByHand) {
  // 0.8 over 0.3 and 0.5, 0.5 over 0.3, and a tie.
  const auto scores = torch::tensor({0.8, 0.3, 0.5, 0.5});
  const auto labels = torch::tensor({1, 0, 0, 1});
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    EXPECT_THAT(measured(auc_of(), {{"scores", scores.to(type)}, {"labels", labels}}),
                ElementsAre(Pair("AUC", 3.5 / 4)));
  }
  EXPECT_THAT(
      measured(auc_of(), {{"scores", scores.unsqueeze(1)}, {"labels", labels.to(torch::kBool)}}),
      ElementsAre(Pair("AUC", 3.5 / 4)));
  EXPECT_THAT(measured(auc_of({.name = "area"}), {{"scores", torch::stack({scores, 1 - scores}, 1)},
                                                  {"labels", torch::stack({labels, labels}, 1)}}),
              ElementsAre(Pair("area", (3.5 / 4 + 0.5 / 4) / 2)));
}

TEST(RocAuc, OfAllPairsExactly) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(11);
  for (const std::int64_t n : {5, 100, 501}) {
    const auto scores = torch::randint(0, 40, {n}, generator).to(torch::kFloat) / 7;
    auto labels = torch::randint(0, 2, {n}, generator, torch::kLong);
    labels[0] = 0;
    labels[1] = 1;
    EXPECT_EQ(measured(auc_of(), {{"scores", scores}, {"labels", labels}}).at("AUC"),
              by_pairs(scores, labels));
  }
}

/// Two scores that f32 cannot tell apart are no tie.
TEST(RocAuc, OfScoresThatOnlyF64TellsApart) {
  const auto scores = torch::tensor({1.0 + 1e-12, 1.0, 0.5}, torch::kDouble);
  const auto labels = torch::tensor({1, 0, 0});
  EXPECT_EQ(measured(auc_of(), {{"scores", scores}, {"labels", labels}}).at("AUC"), 1);
}

TEST(RocAuc, WithoutSamples) {
  EXPECT_TRUE(std::isnan(measured(auc_of(), {{"scores", torch::empty({0})},
                                             {"labels", torch::empty({0}, torch::kLong)}})
                             .at("AUC")));
}

TEST(RocAuc, WhatItRefuses) {
  const auto said = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return refusal(auc_of(), {{"scores", scores}, {"labels", labels}});
  };
  EXPECT_THAT(said(torch::tensor({0.1, 0.2}), torch::tensor({1, 1})), HasSubstr("both classes"));
  EXPECT_THAT(said(torch::tensor({0.1, std::nan("")}, torch::kFloat), torch::tensor({0, 1})),
              HasSubstr("score 1 is NaN"));
  EXPECT_THAT(said(torch::tensor({0.1, std::nan("")}, torch::kDouble), torch::tensor({0, 1})),
              HasSubstr("score 1 is NaN"));
  EXPECT_THAT(said(torch::tensor({0.1, 0.2}), torch::tensor({1, 2})),
              HasSubstr("'labels' has label 2; there are classes 0 to 1"));
  EXPECT_THAT(said(torch::rand({2, 2}), torch::tensor({0, 1})),
              HasSubstr("shape [2, 2] and 'labels' [2]; give floats [samples]"));
  EXPECT_THAT(said(torch::tensor({0, 1}), torch::tensor({0, 1})), HasSubstr("give floats"));
}

}  // namespace
}  // namespace trireme::metrics
