#include "packs/vision/operators/ssd_loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <vector>

#include "packs/vision/operators/detection.h"
#include "packs/vision/operators/ssd_targets.h"
#include "tests/engine/operators/beside_torch.h"
#include "tests/packs/vision/operators/random_boxes.h"
#include "trireme/engine/operators/cross_entropy.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kAnchors = 300, kClasses = 6;

/// Images with 7, 4, 1 and no boxes.
SsdLossTensors random_batch() {
  torch::manual_seed(7);
  const auto boxes = random_boxes(28).view({4, 7, 4});
  const auto labels = torch::randint(1, kClasses, {4, 7});
  for (std::int64_t b = 0; b < 4; ++b) labels[b].slice(0, b == 3 ? 0 : 7 - 3 * b).zero_();
  return {.codes = (3 * torch::randn({4, kAnchors, 4})).requires_grad_(),
          .logits = torch::randn({4, kAnchors, kClasses}).requires_grad_(),
          .boxes = boxes,
          .labels = labels,
          .anchors = random_boxes(kAnchors)};
}

/// By torch's operators over all anchors.
SsdLossSums plain_sums(const SsdLossTensors& batch, const SsdLossOptions& options) {
  const auto [classes, codes] =
      ssd_targets(batch.boxes, batch.labels, batch.anchors, options.overlap);
  const auto is_matched = classes > 0;
  const auto distance = torch::smooth_l1_loss(batch.codes, codes, at::Reduction::None).sum(2);
  const auto entropy = -batch.logits.log_softmax(2).gather(2, classes.unsqueeze(2)).squeeze(2);
  const auto is_chosen = hard_negatives(entropy.detach(), is_matched, options.negatives_ratio);
  return {.boxes = (distance * is_matched).sum(1),
          .classes = (entropy * is_chosen).sum(1),
          .num_matched = is_matched.sum(1)};
}

std::vector<at::Tensor> gradients_of(const SsdLossTensors& batch, const SsdLossSums& sums) {
  const auto loss = (sums.boxes * torch::tensor({1.F, -2.F, 3.F, 4.F})).sum() +
                    (sums.classes * torch::tensor({5.F, 6.F, -7.F, 8.F})).sum();
  return torch::autograd::grad({loss}, {batch.codes, batch.logits});
}

TEST(SsdLossOperator, SumsAndGradientsAreThoseOfTorchOverAllAnchors) {
  const SsdLossTensors batch = random_batch();
  for (const SsdLossOptions& options :
       {SsdLossOptions{}, SsdLossOptions{.overlap = 0.3, .negatives_ratio = 1.5}}) {
    const SsdLossSums sums = ssd_loss(batch, options), expected = plain_sums(batch, options);
    EXPECT_TRUE(torch::equal(sums.num_matched, expected.num_matched));
    EXPECT_GT(sums.num_matched[0].item<std::int64_t>(), 7) << "also by overlap";
    EXPECT_EQ(sums.num_matched[3].item<std::int64_t>(), 0) << "background alone";
    EXPECT_TRUE(torch::allclose(sums.boxes, expected.boxes, 1e-5, 1e-5));
    EXPECT_TRUE(torch::allclose(sums.classes, expected.classes, 1e-5, 1e-5));
    const auto gradients = gradients_of(batch, sums), plain = gradients_of(batch, expected);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(torch::allclose(gradients[i], plain[i], 1e-5, 1e-5)) << i;
      EXPECT_GT(gradients[i].count_nonzero().item<std::int64_t>(), 0) << i;
    }
  }
}

/// Logits for which one cannot tell at a glance who is hardest: small, large, far apart, equal, none of them a number. The choice
/// and the bits are those of the entropies of all anchors.
TEST(SsdLossOperator, ChoosesTheHardestOfAnyLogits) {
  SsdLossTensors batch = random_batch();
  const at::Tensor plain = batch.logits.detach();
  const at::Tensor classes = ssd_targets(batch.boxes, batch.labels, batch.anchors).classes;
  const at::Tensor lowest = torch::full_like(plain, -std::numeric_limits<float>::infinity());
  const at::Tensor some = plain.slice(2, 0, 1) < 0;
  for (const at::Tensor& logits :
       {plain * 1e-3, plain * 30, plain * 400, plain + 900, plain - 5e4, torch::zeros_like(plain),
        (plain * 2).round(), torch::where(plain > 1, lowest, plain),
        torch::where(some, plain, plain * 1e4), torch::where(some, plain * 0.1, plain * 60)}) {
    batch.logits = logits.clone().requires_grad_();
    const at::Tensor entropy = operators::cross_entropy(batch.logits, classes);
    const at::Tensor is_chosen = hard_negatives(entropy.detach(), classes > 0, 3);
    const at::Tensor expected = torch::where(is_chosen, entropy, 0).sum(1);
    const at::Tensor sums = ssd_loss(batch).classes;
    EXPECT_TRUE(torch::allclose(sums, expected, 1e-5, 1e-5)) << sums << expected;
    const auto gradient = [&](const at::Tensor& of) {
      return torch::autograd::grad({of.sum()}, {batch.logits})[0];
    };
    EXPECT_TRUE(torch::equal(gradient(sums), gradient(expected)));
  }
}

TEST(SsdLossOperator, OneSumMayBeUsedAlone) {
  const SsdLossTensors batch = random_batch();
  const std::vector<at::Tensor> inputs = {batch.codes, batch.logits};
  const auto of_boxes = torch::autograd::grad({ssd_loss(batch).boxes.sum()}, inputs);
  EXPECT_GT(of_boxes[0].count_nonzero().item<std::int64_t>(), 0);
  EXPECT_EQ(of_boxes[1].count_nonzero().item<std::int64_t>(), 0);
  const auto of_classes = torch::autograd::grad({ssd_loss(batch).classes.sum()}, inputs);
  EXPECT_EQ(of_classes[0].count_nonzero().item<std::int64_t>(), 0);
  EXPECT_GT(of_classes[1].count_nonzero().item<std::int64_t>(), 0);
}

TEST(SsdLossOperator, CodesOfBackgroundAreNotLookedAt) {
  SsdLossTensors batch = random_batch();
  const at::Tensor is_matched =
      ssd_targets(batch.boxes, batch.labels, batch.anchors).classes.unsqueeze(2) > 0;
  const at::Tensor nan = torch::full({}, std::numeric_limits<float>::quiet_NaN());
  const auto expected = ssd_loss(batch).boxes;
  batch.codes = torch::where(is_matched, batch.codes, nan).detach();
  EXPECT_TRUE(torch::equal(ssd_loss(batch).boxes, expected));
}

TEST(SsdLossOperator, AnswersBatchesWithoutImages) {
  const SsdLossTensors none = {.codes = torch::zeros({0, 5, 4}).requires_grad_(),
                               .logits = torch::zeros({0, 5, 3}).requires_grad_(),
                               .boxes = torch::zeros({0, 2, 4}),
                               .labels = torch::zeros({0, 2}, torch::kLong),
                               .anchors = random_boxes(5)};
  const SsdLossSums sums = ssd_loss(none);
  EXPECT_EQ(sums.boxes.numel(), 0);
  const auto loss = sums.boxes.sum() + sums.classes.sum();
  EXPECT_EQ(torch::autograd::grad({loss}, {none.logits})[0].numel(), 0);
}

TEST(SsdLossOperator, SaysWhatDoesNotFit) {
  const auto with = [](const auto& change) {
    SsdLossTensors batch = random_batch();
    change(batch);
    return [batch] { ssd_loss(batch); };
  };
  operators::expect_error(with([](auto& batch) { batch.codes = batch.codes.slice(1, 1); }),
                          "ssd_loss: codes must have shape [4, 300, 4], has [4, 299, 4]");
  operators::expect_error(with([](auto& batch) { batch.anchors = batch.anchors.slice(0, 1); }),
                          "anchors must have shape [300, 4], has [299, 4]");
  operators::expect_error(with([](auto& batch) { batch.labels = batch.labels.slice(0, 1); }),
                          "labels must have shape [4, 7], has [3, 7]");
  operators::expect_error(with([](auto& batch) { batch.boxes = batch.boxes.slice(1, 1); }),
                          "boxes must have shape [4, 7, 4], has [4, 6, 4]");
  operators::expect_error(with([](auto& batch) { batch.boxes.requires_grad_(); }),
                          "boxes requires a gradient");
  operators::expect_error(with([](auto& batch) { batch.boxes[1][0].zero_(); }), "image 1: box 0 ");
  operators::expect_error(with([](auto& batch) { batch.labels[2][0] = kClasses; }),
                          "is of class 6, but there are 6 classes");
  operators::expect_error(with([](auto& batch) {
                            batch.logits = batch.logits.detach().clone();
                            batch.logits[2][11][0] = std::numeric_limits<float>::quiet_NaN();
                          }),
                          "image 2: the loss of anchor 11 is NaN");
  const SsdLossTensors batch = random_batch();
  operators::expect_error([&] { ssd_loss(batch, {.negatives_ratio = -1}); },
                          "ratio of hard negatives to matches must be 0 or more");
}

}  // namespace
}  // namespace trireme::vision
