#include "packs/vision/models/ssd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "packs/vision/models/ssd_detections.h"
#include "packs/vision/operators/ssd_targets.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

TEST(SsdModel, Of300PixelsHas8732Boxes) {
  Ssd net(SsdConfig{.depth = 18, .width = 8});
  net->eval();
  const at::NoGradGuard guard;
  const SsdOutput output = net(torch::randn({1, 3, 300, 300}));
  EXPECT_THAT(output.codes_BA4.sizes(), testing::ElementsAre(1, 8732, 4));
  EXPECT_THAT(output.logits_BAK.sizes(), testing::ElementsAre(1, 8732, 81));
  EXPECT_THAT(net->default_boxes().sizes(), testing::ElementsAre(8732, 4));
  const auto parameters = net->named_parameters();
  EXPECT_THAT(parameters["backbone.layer3.1.bn2.weight"].sizes(), testing::ElementsAre(32));
  EXPECT_THAT(parameters["extras.4.conv2.weight"].sizes(), testing::ElementsAre(32, 16, 3, 3));
}

/// The boxes of a place stand together, as the default boxes do: a head that looks at its place alone says
/// of the boxes there what the map has there.
TEST(SsdModel, OutputsAreInTheOrderOfTheDefaultBoxes) {
  Ssd net(SsdConfig{.size = 32, .depth = 18, .width = 8, .num_classes = 3});
  const at::NoGradGuard guard;
  for (auto& item : net->named_parameters()) {
    if (item.key().find("heads") != std::string::npos) item.value().zero_();
  }
  auto bias = net->named_parameters()["code_heads.0.bias"];
  bias.copy_(torch::arange(16));
  const auto codes = net(torch::randn({2, 3, 32, 32})).codes_BA4;
  ASSERT_THAT(codes.sizes(), testing::ElementsAre(2, 4 * 4 * 4 + 2 * 2 * 4, 4));
  const auto place = torch::arange(16, torch::kFloat).view({4, 4});
  EXPECT_TRUE(torch::equal(codes[0].slice(0, 0, 4), place));
  EXPECT_TRUE(torch::equal(codes[1].slice(0, 60, 64), place));
  EXPECT_EQ(codes.slice(1, 64).count_nonzero().item<std::int64_t>(), 0);
}

TEST(SsdModel, LayoutsAndFormsOfNormsAreTheSameModel) {
  const auto images = torch::randn({2, 3, 64, 64});
  const auto run = [&](SsdConfig config) {
    torch::manual_seed(2);
    config.size = 64, config.depth = 18, config.width = 8;
    return Ssd(config)->forward(images).logits_BAK;
  };
  const auto plain = run({.has_fused_norms = false});
  for (const auto& logits : {run({}), run({.is_channels_last = true})}) {
    EXPECT_TRUE(torch::allclose(logits, plain, 1e-3, 1e-4));
  }
}

TEST(SsdModel, NumbersThatMakeNoModelAreNamed) {
  for (const SsdConfig& config : {SsdConfig{.size = 31}, SsdConfig{.depth = 50},
                                  SsdConfig{.width = 4}, SsdConfig{.num_classes = 1}}) {
    EXPECT_THROW(Ssd{config}, Error);
  }
}

/// As MLPerf's reference computes it: ranks by sorting twice.
torch::Tensor plain_loss(const SsdOutput& output, const SsdTargets& targets) {
  const auto is_matched = targets.classes > 0;
  const auto matched = is_matched.sum(1);
  const auto boxes =
      (torch::smooth_l1_loss(output.codes_BA4, targets.codes, at::Reduction::None).sum(2) *
       is_matched)
          .sum(1);
  const auto entropy = torch::nn::functional::cross_entropy(
      output.logits_BAK.transpose(1, 2), targets.classes,
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  const auto order = std::get<1>(entropy.detach().masked_fill(is_matched, 0).sort(1, true));
  const auto rank = std::get<1>(order.sort(1));
  const auto is_negative = rank < (3 * matched).clamp_max(entropy.size(1)).unsqueeze(1);
  const auto classes =
      (entropy * (is_matched.to(torch::kFloat) + is_negative.to(torch::kFloat))).sum(1);
  const auto has_boxes = (matched > 0).to(torch::kFloat);
  return ((boxes + classes) * has_boxes / matched.to(torch::kFloat).clamp_min(1e-6)).mean();
}

TEST(SsdLoss, IsThePlainOneWithItsGradients) {
  torch::manual_seed(5);
  const std::int64_t num_anchors = 400, num_classes = 5;
  const auto side = torch::rand({num_anchors, 2}) * 0.4 + 0.05;
  const auto corner = torch::rand({num_anchors, 2}) * (1 - side);
  const auto anchors = torch::cat({corner, corner + side}, 1);
  const auto boxes = anchors.slice(0, 0, 12).reshape({3, 4, 4}) + 0.01;
  auto labels = torch::randint(1, num_classes, {3, 4});
  labels[1].slice(0, 1).zero_();
  labels[2].zero_();  // an image of background alone
  const auto values = [&](std::int64_t last) {
    return torch::randn({3, num_anchors, last}).requires_grad_();
  };
  const SsdOutput output{values(4), values(num_classes)};
  const auto [of_boxes, of_classes] = ssd_losses(output, anchors, boxes, labels);
  const auto loss = of_boxes + of_classes;
  const auto expected = plain_loss(output, ssd_targets(boxes, labels, anchors));
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-4 * expected.item<double>());
  const std::vector<torch::Tensor> inputs = {output.codes_BA4, output.logits_BAK};
  const auto gradients = torch::autograd::grad({loss}, inputs, {}, true);
  const auto plain = torch::autograd::grad({expected}, inputs);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(torch::allclose(gradients[i], plain[i], 1e-4, 1e-6)) << i;
    EXPECT_EQ(gradients[i][2].count_nonzero().item<std::int64_t>(), 0) << "background alone";
  }
}

TEST(SsdDetections, AreTheBestOfEachClass) {
  const auto anchors =
      torch::tensor({{0.1F, 0.1F, 0.3F, 0.3F}, {0.1F, 0.1F, 0.3F, 0.31F}, {0.6F, 0.6F, 0.9F, 1.F}});
  const auto logits = torch::tensor({{0.F, 5.F, 0.F}, {0.F, 4.F, 3.F}, {0.F, 0.F, 6.F}});
  const SsdOutput output{torch::zeros({1, 3, 4}), logits.unsqueeze(0)};
  const auto found = ssd_detections(output, anchors, {.least_score = 0.1});
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].size(), 3U) << "a second box of class 1 is the same object";
  const auto scores = logits.softmax(1);
  const std::pair<int, int> expected[] = {{2, 2}, {0, 1}, {1, 2}};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [anchor, label] = expected[i];
    EXPECT_EQ(found[0][i].box.label, label);
    EXPECT_EQ(found[0][i].score, scores[anchor][label].item<float>());
    EXPECT_NEAR(found[0][i].box.x1, anchors[anchor][0].item<float>(), 1e-6);
    EXPECT_NEAR(found[0][i].box.y2, anchors[anchor][3].item<float>(), 1e-6);
  }
  EXPECT_EQ(ssd_detections(output, anchors, {.least_score = 0.1, .most = 2})[0].size(), 2U);
  EXPECT_TRUE(ssd_detections(output, anchors, {.least_score = 1})[0].empty());
}

}  // namespace
}  // namespace trireme::vision
