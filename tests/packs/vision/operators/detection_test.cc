#include "packs/vision/operators/detection.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/operators/beside_torch.h"

namespace trireme::vision {
namespace {

using namespace operators;

/// Regions as grids that torch's own bilinear sampling takes, one sample a bin, inside the image.
at::Tensor torch_roi_align(const at::Tensor& features, const at::Tensor& regions, int pooled) {
  const std::int64_t height = features.size(2), width = features.size(3);
  const auto steps = (torch::arange(pooled, torch::kDouble) + 0.5) / pooled;
  const auto centres = [&](int low, int high, std::int64_t size) {
    const auto begin = regions.select(1, low).to(torch::kDouble).unsqueeze(1);
    const auto length = regions.select(1, high).to(torch::kDouble).unsqueeze(1) - begin;
    return (begin + length * steps) / static_cast<double>(size - 1) * 2 - 1;
  };
  const auto x = centres(1, 3, width), y = centres(2, 4, height);
  const std::int64_t count = regions.size(0);
  const auto grid = torch::stack({x.unsqueeze(1).expand({count, pooled, pooled}),
                                  y.unsqueeze(2).expand({count, pooled, pooled})},
                                 3);
  return at::grid_sampler(features.index_select(0, regions.select(1, 0).to(torch::kLong)), grid, 0,
                          0, true);
}

TEST(RoiAlignOperator, IsBilinearSamplingWithGradients) {
  torch::manual_seed(6);
  const at::Tensor regions = torch::tensor(
      {{0.F, 0.5F, 1.F, 6.F, 7.5F}, {1.F, 2.F, 2.F, 4.F, 9.F}, {0.F, 0.F, 0.F, 8.F, 10.F}});
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    expect_like_torch(
        {torch::randn({2, 5, 11, 9}).contiguous(format)},
        [&](const TensorList& x) {
          return roi_align(x[0], regions,
                           {.pooled_height = 3, .pooled_width = 3, .num_samples = 1});
        },
        [&](const TensorList& x) { return torch_roi_align(x[0], regions, 3); });
  }
}

TEST(RoiAlignOperator, SaysWhatDoesNotFit) {
  const at::Tensor features = torch::randn({2, 5, 11, 9});
  expect_error([&] { roi_align(features, torch::zeros({3, 4})); },
               "trireme::roi_align: regions must have shape [3, 5], has [3, 4]");
  expect_error([&] { roi_align(features, torch::tensor({{2.F, 0.F, 0.F, 1.F, 1.F}})); },
               "region 0 ");
}

TEST(FixedNms, KeepsTheBestOfEachClassInEveryImage) {
  const at::Tensor boxes = torch::tensor({{0.F, 0.F, 10.F, 10.F},
                                          {1.F, 0.F, 11.F, 10.F},
                                          {0.F, 0.F, 10.F, 9.F},
                                          {30.F, 30.F, 40.F, 40.F}})
                               .repeat({2, 1, 1});
  const at::Tensor scores = torch::tensor({{0.5F, 0.9F, 0.4F, 0.3F}, {0.9F, 0.1F, 0.2F, 0.95F}});
  const at::Tensor classes = torch::tensor({{1, 1, 2, 1}, {1, 1, 1, 1}}, torch::kLong);
  const auto [places, counts] = fixed_nms(boxes, scores, classes, {.capacity = 4});
  EXPECT_TRUE(torch::equal(counts, torch::tensor({3, 2}, torch::kLong)));
  EXPECT_TRUE(torch::equal(places, torch::tensor({{1, 2, 3, 0}, {3, 0, 0, 0}}, torch::kLong)));
}

TEST(HardNegatives, AreTheLargestLossesOfTheBackground) {
  const at::Tensor losses = torch::tensor({{0.1F, 5.F, 0.3F, 0.2F, 4.F}});
  const at::Tensor matched = torch::tensor({{true, false, false, false, false}});
  EXPECT_TRUE(torch::equal(hard_negatives(losses, matched, 2),
                           torch::tensor({{true, true, false, false, true}})));
  expect_error([&] { hard_negatives(losses, matched.to(torch::kFloat), 2); },
               "is_matched must be of type Bool");
}

TEST(FixedNonzero, FillsPlacesLeftOver) {
  const at::Tensor values =
      torch::tensor({{false, true, true, false}, {false, false, false, false}});
  const auto [places, counts] = fixed_nonzero(values, 3);
  EXPECT_TRUE(torch::equal(counts, torch::tensor({2, 0}, torch::kLong)));
  EXPECT_TRUE(torch::equal(places, torch::tensor({{1, 2, 1}, {0, 0, 0}}, torch::kLong)));
}

}  // namespace
}  // namespace trireme::vision
