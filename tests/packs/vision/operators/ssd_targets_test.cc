#include "packs/vision/operators/ssd_targets.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "tests/engine/operators/beside_torch.h"
#include "tests/packs/vision/operators/random_boxes.h"

namespace trireme::vision {
namespace {

/// inter / union, [M, A].
at::Tensor torch_overlaps(const at::Tensor& boxes, const at::Tensor& anchors) {
  const auto area = [](const at::Tensor& b) { return (b.slice(1, 2) - b.slice(1, 0, 2)).prod(1); };
  const auto low = torch::max(boxes.unsqueeze(1).slice(2, 0, 2), anchors.slice(1, 0, 2));
  const auto high = torch::min(boxes.unsqueeze(1).slice(2, 2), anchors.slice(1, 2));
  const auto inter = (high - low).clamp_min(0).prod(2);
  return inter / (area(boxes).unsqueeze(1) + area(anchors) - inter);
}

/// One image, by torch's operators.
SsdTargets torch_targets(const at::Tensor& boxes, const at::Tensor& labels,
                         const at::Tensor& anchors) {
  const auto overlaps = torch_overlaps(boxes, anchors);
  auto [most, match] = overlaps.max(0);
  const auto best = overlaps.argmax(1);
  for (std::int64_t t = 0; t < boxes.size(0); ++t) {
    most[best[t].item<std::int64_t>()] = 2;
    match[best[t].item<std::int64_t>()] = t;
  }
  const auto is_matched = most > 0.5;
  const auto own = boxes.index_select(0, match);
  const auto side = own.slice(1, 2) - own.slice(1, 0, 2);
  const auto anchor_side = anchors.slice(1, 2) - anchors.slice(1, 0, 2);
  const auto centre = (own.slice(1, 2) + own.slice(1, 0, 2)) / 2;
  const auto anchor_centre = (anchors.slice(1, 2) + anchors.slice(1, 0, 2)) / 2;
  const auto codes = torch::cat(
      {(centre - anchor_centre) / anchor_side / 0.1, (side / anchor_side).log() / 0.2}, 1);
  return {labels.index_select(0, match) * is_matched, codes * is_matched.unsqueeze(1)};
}

TEST(SsdTargets, AreThoseOfAPlainMatching) {
  torch::manual_seed(4);
  const at::Tensor anchors = random_boxes(300);
  const at::Tensor boxes = torch::zeros({6, 9, 4});
  const at::Tensor labels = torch::zeros({6, 9}, torch::kLong);
  for (std::int64_t b = 0; b < 6; ++b) {  // 9, 7, 5, 3, 1 and none
    const std::int64_t count = std::max<std::int64_t>(9 - 2 * b, 0);
    if (b == 5) break;
    boxes[b].slice(0, 0, count).copy_(random_boxes(count));
    labels[b].slice(0, 0, count).copy_(torch::randint(1, 5, {count}));
  }
  const auto [classes, codes] = ssd_targets(boxes, labels, anchors);
  for (std::int64_t b = 0; b < 5; ++b) {
    const std::int64_t count = 9 - 2 * b;
    const auto expected =
        torch_targets(boxes[b].slice(0, 0, count), labels[b].slice(0, 0, count), anchors);
    EXPECT_TRUE(torch::equal(classes[b], expected.classes)) << b;
    EXPECT_TRUE(torch::allclose(codes[b], expected.codes, 1e-4, 1e-4)) << b;
    EXPECT_GE((classes[b] > 0).sum().item<std::int64_t>(), 1) << "each box has an anchor";
  }
  EXPECT_EQ(classes[5].count_nonzero().item<std::int64_t>(), 0) << "no boxes: background";
  EXPECT_EQ(codes[5].count_nonzero().item<std::int64_t>(), 0);
}

TEST(SsdTargets, SaysWhatDoesNotFit) {
  const at::Tensor anchors = torch::tensor({{0.F, 0.F, 1.F, 1.F}});
  const at::Tensor labels = torch::ones({2, 1}, torch::kLong);
  at::Tensor boxes = torch::tensor({{{0.F, 0.F, 1.F, 1.F}}, {{0.F, 0.F, 0.F, 1.F}}});
  operators::expect_error([&] { ssd_targets(boxes, labels, anchors); }, "image 1: box 0 ");
  operators::expect_error([&] { ssd_targets(boxes, labels.to(torch::kInt), anchors); },
                          "labels must be of type Long");
  operators::expect_error([&] { ssd_targets(boxes, labels, anchors.slice(1, 0, 3)); },
                          "anchors must have shape [1, 4], has [1, 3]");
  boxes = boxes.slice(0, 0, 1);
  operators::expect_error([&] { ssd_targets(boxes, labels, anchors); },
                          "boxes must have shape [2, 1, 4], has [1, 1, 4]");
}

}  // namespace
}  // namespace trireme::vision
