#include "packs/vision/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

/// Those of the published models.
TEST(ResNet, HasTheSizesAndNamesOfOthers) {
  EXPECT_EQ(num_parameters(*ResNet(ResNetConfig{.depth = 18})), 11'689'512);
  EXPECT_EQ(num_parameters(*ResNet(ResNetConfig{.depth = 34})), 21'797'672);
  const ResNet net(ResNetConfig{});
  EXPECT_EQ(num_parameters(*net), 25'557'032);
  const auto parameters = net->named_parameters();
  const auto sizes = [&](const char* name) { return parameters[name].sizes().vec(); };
  EXPECT_THAT(sizes("conv1.weight"), testing::ElementsAre(64, 3, 7, 7));
  EXPECT_THAT(sizes("bn1.bias"), testing::ElementsAre(64));
  EXPECT_THAT(sizes("layer1.0.downsample.0.weight"), testing::ElementsAre(256, 64, 1, 1));
  EXPECT_THAT(sizes("layer2.0.downsample.1.weight"), testing::ElementsAre(512));
  EXPECT_THAT(sizes("layer3.5.conv2.weight"), testing::ElementsAre(256, 256, 3, 3));
  EXPECT_THAT(sizes("layer4.2.bn3.weight"), testing::ElementsAre(2048));
  EXPECT_THAT(sizes("fc.weight"), testing::ElementsAre(1000, 2048));
  EXPECT_EQ(net->named_buffers()["layer4.2.bn3.running_var"].numel(), 2048);
}

struct NetRun {
  torch::Tensor logits;
  std::map<std::string, torch::Tensor> gradients, statistics;
};

NetRun run(ResNetConfig config, bool is_training = true) {
  torch::manual_seed(1);
  ResNet net(config);
  for (auto& parameter : net->parameters()) {  // so that no block is its shortcut alone
    if (parameter.dim() == 1) parameter.data().add_(torch::randn_like(parameter), 0.2);
  }
  const auto images = torch::randn({4, 3, 40, 36});
  net(images);  // statistics of its own
  net->train(is_training);
  NetRun result{.logits = net(images)};
  result.logits.square().sum().backward();
  for (const auto& item : net->named_parameters())
    result.gradients[item.key()] = item.value().grad();
  for (const auto& item : net->named_buffers()) result.statistics[item.key()] = item.value();
  return result;
}

void expect_close(const torch::Tensor& a, const torch::Tensor& b, const std::string& what) {
  const double largest = b.abs().max().item<double>();
  EXPECT_LE((a - b).abs().max().item<double>(), 2e-4 * largest + 1e-6) << what;
}

void expect_same(const NetRun& a, const NetRun& b) {
  expect_close(a.logits, b.logits, "logits");
  for (const auto& [name, gradient] : b.gradients) {
    expect_close(a.gradients.at(name), gradient, name);
  }
  for (const auto& [name, statistics] : b.statistics) {
    expect_close(a.statistics.at(name), statistics, name);
  }
}

TEST(ResNet, FusedNormsAndLayoutsAreThePlainModel) {
  for (const std::int64_t depth : {18, 50}) {
    const ResNetConfig plain{
        .depth = depth, .width = 8, .num_classes = 5, .has_fused_norms = false};
    ResNetConfig fused = plain;
    fused.has_fused_norms = true;
    for (const bool is_training : {true, false}) {
      const NetRun expected = run(plain, is_training);
      expect_same(run(fused, is_training), expected);
      fused.is_channels_last = !fused.is_channels_last;
      expect_same(run(fused, is_training), expected);
    }
  }
}

TEST(ResNet, ABlockBeginsAsItsShortcut) {
  torch::manual_seed(1);
  const ResNetConfig config{.depth = 18, .width = 8};
  ResidualBlock block(config, 8, 8, 1);
  const auto x = torch::randn({2, 8, 5, 5}).abs();
  EXPECT_TRUE(torch::equal(block(x), x));
}

TEST(ResNet, ASmallStemKeepsSmallImages) {
  ResNet net(ResNetConfig{.depth = 18, .width = 8, .num_classes = 10, .has_small_stem = true});
  EXPECT_EQ(net->named_parameters()["conv1.weight"].sizes().vec(),
            (std::vector<std::int64_t>{8, 3, 3, 3}));
  EXPECT_EQ(net(torch::randn({2, 3, 8, 8})).sizes().vec(), (std::vector<std::int64_t>{2, 10}));
}

TEST(ResNet, NumbersThatMakeNoModelAreRefused) {
  for (const ResNetConfig& config :
       {ResNetConfig{.depth = 19}, ResNetConfig{.width = 0}, ResNetConfig{.num_classes = 0}}) {
    try {
      ResNet net(config);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace trireme::vision
