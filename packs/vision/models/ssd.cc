#include "packs/vision/models/ssd.h"

#include <torch/nn/init.h>

#include <algorithm>
#include <array>
#include <string>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

/// Of the extra levels by number, times the width; further ones are as the last.
constexpr std::array<std::int64_t, 3> kOutside = {8, 8, 4};
constexpr std::array<std::int64_t, 3> kInside = {4, 4, 2};

Conv2d xavier(const Conv2dOptions& options) {
  Conv2d convolution(options);
  torch::nn::init::xavier_uniform_(convolution->weight);
  if (convolution->bias.defined()) torch::nn::init::zeros_(convolution->bias);
  return convolution;
}

ResNetConfig backbone_of(const SsdConfig& config) {
  const auto require = [](bool is_good, const std::string& what, std::int64_t number) {
    if (is_good) return;
    throw Error(ErrorKind::kInvalidArgument, "SSD: " + what + ", got " + std::to_string(number));
  };
  require(config.depth == 18 || config.depth == 34, "the depth is 18 or 34", config.depth);
  require(config.num_classes >= 2, "there is background and a class at least", config.num_classes);
  return {.depth = config.depth,
          .width = config.width,
          .has_fused_norms = config.has_fused_norms,
          .is_channels_last = config.is_channels_last};
}

/// [B, n * last, H, W] -> [B, H * W * n, last]
torch::Tensor by_box(const torch::Tensor& x_BCHW, std::int64_t last) {
  return x_BCHW.permute({0, 2, 3, 1}).reshape({x_BCHW.size(0), -1, last});
}

}  // namespace

SsdExtraImpl::SsdExtraImpl(const SsdConfig& config, const Channels& channels, bool is_halved) {
  const auto [in, inside, out] = channels;
  narrow_ = register_module("conv1", xavier(Conv2dOptions(in, inside, 1).bias(false)));
  narrow_norm_ = register_module("bn1", FusedNorm(inside, config.has_fused_norms));
  auto wide = Conv2dOptions(inside, out, 3).bias(false);
  if (is_halved) wide.stride(2).padding(1);
  wide_ = register_module("conv2", xavier(wide));
  wide_norm_ = register_module("bn2", FusedNorm(out, config.has_fused_norms));
}

torch::Tensor SsdExtraImpl::forward(const torch::Tensor& x_BCHW) {
  return wide_norm_->relu(wide_(narrow_norm_->relu(narrow_(x_BCHW))));
}

SsdImpl::SsdImpl(const SsdConfig& config) : config_(config) {
  const std::vector<BoxLevel> levels = box_levels(config.size);
  backbone_ = register_module("backbone",
                              ResNetTrunk(backbone_of(config), std::vector<std::int64_t>{1, 2, 1}));
  torch::nn::ModuleList extras, code_heads, class_heads;
  std::int64_t channels = backbone_->num_outputs();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) {
      const std::size_t at = std::min(i - 1, kOutside.size() - 1);
      const SsdExtraImpl::Channels of = {channels, kInside[at] * config.width,
                                         kOutside[at] * config.width};
      extras_.emplace_back(config, of, levels[i].is_halved);
      extras->push_back(extras_.back());
      channels = of.out;
    }
    const std::int64_t boxes = levels[i].boxes_per_place();
    const auto head = [&](std::int64_t out) {
      return xavier(Conv2dOptions(channels, boxes * out, 3).padding(1));
    };
    code_heads->push_back(code_heads_.emplace_back(head(4)));
    class_heads->push_back(class_heads_.emplace_back(head(config.num_classes)));
  }
  register_module("extras", extras);
  register_module("code_heads", code_heads);
  register_module("class_heads", class_heads);
  const std::vector<float> boxes = vision::default_boxes(levels);
  default_boxes_ = register_buffer("default_boxes", torch::tensor(boxes).view({-1, 4}));
}

SsdOutput SsdImpl::forward(const torch::Tensor& images_BCHW) {
  std::vector<torch::Tensor> codes, logits;
  auto x = backbone_(images_BCHW);
  for (std::size_t i = 0; i < code_heads_.size(); ++i) {
    if (i > 0) x = extras_[i - 1](x);
    codes.push_back(by_box(code_heads_[i](x), 4));
    logits.push_back(by_box(class_heads_[i](x), config_.num_classes));
  }
  return {torch::cat(codes, 1), torch::cat(logits, 1)};
}

SsdLosses ssd_losses(const SsdOutput& output, const torch::Tensor& default_boxes,
                     const torch::Tensor& boxes_BM4, const torch::Tensor& labels_BM,
                     const SsdLossOptions& options) {
  const auto [boxes_B, classes_B, matched_B] = ssd_loss({.codes = output.codes_BA4,
                                                         .logits = output.logits_BAK,
                                                         .boxes = boxes_BM4,
                                                         .labels = labels_BM,
                                                         .anchors = default_boxes},
                                                        options);
  // Images without boxes have no matched ones and no hard negatives: sums of 0, divided by 1.
  const auto share_B = matched_B.clamp_min(1).reciprocal();
  return {.boxes = (boxes_B * share_B).mean(), .classes = (classes_B * share_B).mean()};
}

}  // namespace trireme::vision
