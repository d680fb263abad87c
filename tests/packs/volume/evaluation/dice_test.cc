#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/engine/metrics/measured.h"

namespace trireme::metrics {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

MakeMetric dice_of(std::int64_t num_classes, const DiceOptions& options = {}) {
  return [num_classes, options] { return dice(num_classes, options); };
}

/// Case 0: classes 1 and 2 have 2 x 1 / 3. Case 1: class 1 has 0, class 2 is in neither.
struct TwoCases {
  torch::Tensor truth = torch::tensor({0, 1, 1, 2, 0, 0, 0, 1}).view({2, 1, 4});
  torch::Tensor found = torch::tensor({0, 1, 2, 2, 0, 0, 0, 0}).view({2, 1, 4});
  Tensors outputs = {{"predictions", found}, {"labels", truth}};
};

TEST(DiceMetric, IsTheMeanOverCasesOfTheirClasses) {
  const TwoCases cases;
  EXPECT_THAT(measured(dice_of(3), cases.outputs),
              ElementsAre(Pair("Dice", DoubleEq((2.0 / 3 + 0) / 2))));
  const Tensors bytes = {{"predictions", cases.found.to(torch::kByte)}, {"labels", cases.truth}};
  EXPECT_THAT(measured(dice_of(3, {.class_names = {"kidney", "tumour"}}), bytes),
              ElementsAre(Pair("Dice", DoubleEq(1.0 / 3)), Pair("Dice kidney", DoubleEq(1.0 / 3)),
                          Pair("Dice tumour", DoubleEq(2.0 / 3))));
  EXPECT_THAT(measured(dice_of(3, {.first_class = 0}), cases.outputs),
              ElementsAre(Pair("Dice", DoubleEq(((1 + 4.0 / 3) / 3 + (6.0 / 7) / 2) / 2))));
  EXPECT_THAT(
      measured(dice_of(3, {.smoothing = 1, .name = "smooth"}),
               {{"predictions", cases.found.slice(0, 1)}, {"labels", cases.truth.slice(0, 1)}}),
      ElementsAre(Pair("smooth", DoubleEq((1.0 / 2 + 1) / 2))));
  EXPECT_THAT(measured(dice_of(3), {{"predictions", cases.found.unsqueeze(1)},
                                    {"labels", cases.truth.unsqueeze(1)}}),
              ElementsAre(Pair("Dice", DoubleEq(1.0 / 3))));
}

TEST(DiceMetric, BesideSumsOfMasks) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(2);
  const auto found = torch::randint(0, 2, {3, 4, 5, 6}, generator, torch::kLong);
  const auto truth = torch::randint(0, 2, {3, 4, 5, 6}, generator, torch::kLong);
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const double both = (found[i] * truth[i]).sum().item<double>();
    sum += 2 * both / (found[i].sum().item<double>() + truth[i].sum().item<double>());
  }
  EXPECT_THAT(measured(dice_of(2), {{"predictions", found.to(torch::kBool)}, {"labels", truth}}),
              ElementsAre(Pair("Dice", DoubleEq(sum / 3))));
}

TEST(DiceMetric, WithoutAnyClass) {
  const auto empty = torch::zeros({2, 3, 4}, torch::kByte);
  const Results found = measured(dice_of(2, {.class_names = {"kidney"}}),
                                 {{"predictions", empty}, {"labels", empty}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(std::isnan(found.at("Dice")));
}

TEST(DiceMetric, WhatItRefuses) {
  auto labels = torch::zeros({1, 2, 2, 3}, torch::kLong);
  labels[0][1][0][2] = 2;
  const auto none = torch::zeros_like(labels);
  const auto said = [&](const torch::Tensor& predictions, const torch::Tensor& labels) {
    return refusal(dice_of(2), {{"predictions", predictions}, {"labels", labels}});
  };
  EXPECT_THAT(said(none, labels), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(said(torch::zeros({1, 2, 2, 2, 3}), labels), HasSubstr("scores.argmax(1)"));
  EXPECT_THAT(said(none.to(torch::kFloat), none), HasSubstr("'predictions' has floats"));
  EXPECT_THAT(said(none, none + (std::int64_t{1} << 32)), HasSubstr("do not fit 32 bits"));
  const auto refused = [](std::int64_t num_classes, const DiceOptions& options) {
    return test::error_of([&] { dice(num_classes, options); }).message();
  };
  EXPECT_THAT(refused(3, {.class_names = {"kidney", "kidney"}}),
              HasSubstr("class_names has 1 different names; give 2"));
  EXPECT_THAT(refused(2, {.first_class = 2}), HasSubstr("first_class is 2"));
  EXPECT_THAT(refused(0, {.first_class = 0}), HasSubstr("first_class is 0"));
}

}  // namespace
}  // namespace trireme::metrics
