#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MakeMetric accuracy_of(const AccuracyOptions& options = {}) {
  return [options] { return accuracy(options); };
}

MakeMetric top_accuracy_of(std::int64_t k, const TopKAccuracyOptions& options = {}) {
  return [k, options] { return top_k_accuracy(k, options); };
}

torch::Tensor four_scores() {
  return torch::tensor({{0.1, 0.7, 0.2}, {0.5, 0.2, 0.3}, {0.4, 0.4, 0.2}, {0.2, 0.3, 0.5}});
}

TEST(Accuracy, IsTheShareOfLabelsOfHighestScore) {
  const auto scores = four_scores();
  EXPECT_THAT(
      measured(accuracy_of(), {{"scores", scores}, {"labels", torch::tensor({1, 2, 0, 2})}}),
      ElementsAre(Pair("accuracy", 0.75)));
  EXPECT_THAT(measured(accuracy_of({.scores = "says", .labels = "is", .name = "right"}),
                       {{"says", torch::tensor({{1, 0, 2}, {1, 0, 2}, {1, 0, 2}})},
                        {"is", torch::tensor({2, 2, 0})}}),
              ElementsAre(Pair("right", 2.0 / 3)));
}

TEST(Accuracy, TheFirstOfEqualScoresCounts) {
  const auto scores = four_scores();
  EXPECT_THAT(
      measured(accuracy_of(), {{"scores", scores}, {"labels", torch::tensor({0, 1, 1, 0})}}),
      ElementsAre(Pair("accuracy", 0)));
  EXPECT_THAT(
      measured(top_accuracy_of(2), {{"scores", scores}, {"labels", torch::tensor({1, 2, 1, 0})}}),
      ElementsAre(Pair("top2_accuracy", 0.75)));
  const auto equal = torch::zeros({1, 4});
  for (std::int64_t label = 0; label < 4; ++label) {
    for (std::int64_t k = 1; k < 4; ++k) {
      EXPECT_EQ(is_among_first(equal, torch::tensor({label}), k).item<bool>(), label < k);
    }
  }
}

/// Beside a stable sort, in each type; levels of few bits, so that many are equal.
TEST(Accuracy, AmongTheFirstAsASortHasIt) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  const auto levels_BTC = torch::randint(0, 4, {5, 6, 9}, generator);
  const auto labels_BT = torch::randint(0, 9, {5, 6}, generator, torch::kLong);
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kLong}) {
    const auto scores_BTC = levels_BTC.to(type);
    const auto order_BTC = std::get<1>(
        levels_BTC.sort(/*stable=*/std::optional<bool>(true), /*dim=*/-1, /*descending=*/true));
    for (const std::int64_t k : {1, 3, 8}) {
      const auto expected = order_BTC.slice(-1, 0, k).eq(labels_BT.unsqueeze(-1)).any(-1);
      EXPECT_TRUE(torch::equal(is_among_first(scores_BTC, labels_BT, k), expected)) << type << k;
    }
  }
}

TEST(Accuracy, AScoreThatIsNanIsAboveAllOthers) {
  const auto scores = torch::tensor({{kNan, 0.0, 1.0}});
  EXPECT_FALSE(is_among_first(scores, torch::tensor({0}), 2).item<bool>()) << "no credit for NaN";
  EXPECT_FALSE(is_among_first(scores, torch::tensor({2}), 1).item<bool>());
  EXPECT_TRUE(is_among_first(scores, torch::tensor({2}), 2).item<bool>());
}

TEST(Accuracy, LeavesOutWhatIsIgnored) {
  const auto scores = four_scores().view({2, 2, 3});
  const auto labels = torch::tensor({1, -100, 1, 2}).view({2, 2});
  EXPECT_THAT(measured(accuracy_of(), {{"scores", scores}, {"labels", labels}}),
              ElementsAre(Pair("accuracy", 2.0 / 3)));
  const auto bytes = torch::tensor({156, 0}, torch::kByte);  // 156 is -100 to eight bits
  EXPECT_THAT(measured(accuracy_of(), {{"scores", torch::eye(157).index({torch::tensor({156, 1})})},
                                       {"labels", bytes}}),
              ElementsAre(Pair("accuracy", 0.5)));
  const auto none = torch::full({2, 2}, -100);
  EXPECT_TRUE(
      std::isnan(measured(accuracy_of(), {{"scores", scores}, {"labels", none}}).at("accuracy")));
  EXPECT_TRUE(std::isnan(measured(accuracy_of(), {{"scores", torch::empty({0, 3})},
                                                  {"labels", torch::empty({0}, torch::kLong)}})
                             .at("accuracy")));
}

TEST(Accuracy, OfTwoClassesAndOfPredictions) {
  const auto half = accuracy_of({.threshold = 0.5});
  EXPECT_THAT(measured(half, {{"scores", torch::tensor({0.2, 0.5, 0.6})},
                              {"labels", torch::tensor({0, 1, 1})}}),
              ElementsAre(Pair("accuracy", 2.0 / 3)));
  EXPECT_THAT(measured(half, {{"scores", torch::tensor({{0.2, 0.6}, {0.6, 0.6}})},
                              {"labels", torch::tensor({{0, 1}, {0, 1}}).to(torch::kBool)}}),
              ElementsAre(Pair("accuracy", 0.75)));
  EXPECT_THAT(measured(accuracy_of(), {{"scores", torch::tensor({3, 1, 2})},
                                       {"labels", torch::tensor({3, 1, 0})}}),
              ElementsAre(Pair("accuracy", 2.0 / 3)));
}

TEST(Accuracy, WhatItRefuses) {
  const auto scores = four_scores();
  const auto said = [](const MakeMetric& make, const torch::Tensor& scores,
                       const torch::Tensor& labels) {
    return refusal(make, {{"scores", scores}, {"labels", labels}});
  };
  EXPECT_THAT(said(accuracy_of(), torch::tensor({0.2, 0.6}), torch::tensor({0, 1})),
              HasSubstr("give scores of all classes, or to accuracy a threshold"));
  EXPECT_THAT(said(accuracy_of(), scores, torch::tensor({0, 1, 2, 3})),
              HasSubstr("'labels' has label 3; there are classes 0 to 2"));
  EXPECT_THAT(said(accuracy_of(), scores, torch::tensor({0, 1, 2, -1})), HasSubstr("label -1"));
  EXPECT_THAT(said(accuracy_of(), torch::tensor({{0.1, kNan}}), torch::tensor({0})),
              HasSubstr("'scores' has a score that is NaN"));
  EXPECT_THAT(said(accuracy_of(), scores, torch::full({4}, 0.5)), HasSubstr("not whole"));
  EXPECT_THAT(said(accuracy_of(), scores, torch::zeros({4, 1}, torch::kLong)),
              HasSubstr("shape [4, 3] and 'labels' [4, 1]"));
  EXPECT_THAT(said(accuracy_of({.threshold = 0.5}), scores, torch::zeros({4}, torch::kLong)),
              HasSubstr("have the labels' shape"));
  EXPECT_THAT(
      said(accuracy_of({.threshold = 0}), torch::tensor({-1.0, 1.0}), torch::tensor({-1, 1})),
      HasSubstr("label -1; there are classes 0 to 1"));
  EXPECT_THAT(said(top_accuracy_of(3), scores, torch::zeros({4}, torch::kLong)),
              HasSubstr("always among the first 3"));
  EXPECT_THAT(said(top_accuracy_of(2), torch::tensor({1, 2}), torch::tensor({0, 1})),
              HasSubstr("give scores of all classes"));
  EXPECT_THAT(refusal(accuracy_of({.scores = "logits"}), {{"scores", scores}, {"labels", scores}}),
              HasSubstr("not whole"));
  EXPECT_THAT(refusal(accuracy_of({.scores = "logits"}),
                      {{"scores", scores}, {"labels", torch::tensor({0, 1, 2, 2})}}),
              HasSubstr("no output 'logits', only 'labels', 'scores'"));
  EXPECT_THAT(test::error_of([] { top_k_accuracy(0); }).message(), HasSubstr("k is 0"));
}

TEST(Together, AreAllThatAreGiven) {
  const auto all = together(accuracy(), top_k_accuracy(2), perplexity());
  ASSERT_EQ(all.size(), 3U);
  for (const auto& metric : all) EXPECT_NE(metric, nullptr);
}

}  // namespace
}  // namespace trireme::metrics
