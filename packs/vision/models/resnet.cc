#include "packs/vision/models/resnet.h"

#include <torch/nn/init.h>

#include <array>
#include <map>
#include <string>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

constexpr std::int64_t kGroups = 4;
constexpr std::int64_t kExpansion = 4;  // of channels by a block of three

const std::map<std::int64_t, std::array<std::int64_t, kGroups>>& blocks_by_depth() {
  static const std::map<std::int64_t, std::array<std::int64_t, kGroups>> kBlocks = {
      {18, {2, 2, 2, 2}}, {34, {3, 4, 6, 3}}, {50, {3, 4, 6, 3}}};
  return kBlocks;
}

Conv2dOptions square(std::int64_t in, std::int64_t out, std::int64_t side,
                     std::int64_t stride = 1) {
  return Conv2dOptions(in, out, side).stride(stride).padding(side / 2).bias(false);
}

Conv2d make_convolution(const Conv2dOptions& options) {
  Conv2d convolution(options);
  torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
  return convolution;
}

FusedNorm make_norm(std::int64_t channels, const ResNetConfig& config) {
  return FusedNorm(channels, config.has_fused_norms, config.norm_samples);
}

/// What the shortcut passes through where a block changes the shape.
struct Downsample : torch::nn::Module {
  Downsample(const Conv2d& convolution, const FusedNorm& norm) {
    register_module("0", convolution);
    register_module("1", norm);
  }
};

void require(bool is_good, const std::string& what, std::int64_t number) {
  if (is_good) return;
  throw Error(ErrorKind::kInvalidArgument, "ResNet: " + what + ", got " + std::to_string(number));
}

}  // namespace

void check(const ResNetConfig& config) {
  constexpr std::int64_t kMost = 1 << 20;
  require(blocks_by_depth().contains(config.depth), "the depth is 18, 34 or 50", config.depth);
  // oneDNN of torch 2.15 writes beyond its memory in the backward of convolutions of 4 channels.
  require(config.width >= 8 && config.width <= kMost, "the width is from 8 to 2^20", config.width);
  require(config.num_classes >= 1, "there is a class at least", config.num_classes);
  require(config.norm_samples >= 0, "a norm's group has samples, or 0: all", config.norm_samples);
  require(config.norm_samples == 0 || config.has_fused_norms,
          "plain norms know no groups of samples; take fused ones, or groups of 0: all",
          config.norm_samples);
}

ResidualBlockImpl::ResidualBlockImpl(const ResNetConfig& config, std::int64_t in,
                                     std::int64_t channels, std::int64_t stride) {
  const bool has_three = config.depth >= 50;
  outputs_ = has_three ? kExpansion * channels : channels;
  if (has_three) {
    add(square(in, channels, 1), config);
    add(square(channels, channels, 3, stride), config);
    add(square(channels, outputs_, 1), config);
  } else {
    add(square(in, channels, 3, stride), config);
    add(square(channels, channels, 3), config);
  }
  norms_.back()->begin_with_zero();
  if (stride == 1 && in == outputs_) return;
  shortcut_ = make_convolution(square(in, outputs_, 1, stride));
  shortcut_norm_ = make_norm(outputs_, config);
  register_module("downsample", std::make_shared<Downsample>(shortcut_, shortcut_norm_));
}

void ResidualBlockImpl::add(const Conv2dOptions& options, const ResNetConfig& config) {
  const std::string number = std::to_string(convolutions_.size() + 1);
  convolutions_.push_back(register_module("conv" + number, make_convolution(options)));
  norms_.push_back(register_module("bn" + number, make_norm(options.out_channels(), config)));
}

torch::Tensor ResidualBlockImpl::forward(const torch::Tensor& x_BCHW) {
  auto y = x_BCHW;
  for (std::size_t i = 0; i + 1 < convolutions_.size(); ++i) {
    y = norms_[i]->relu(convolutions_[i](y));
  }
  y = convolutions_.back()(y);
  return norms_.back()->add_relu(y, shortcut_ ? shortcut_norm_(shortcut_(x_BCHW)) : x_BCHW);
}

ResNetTrunkImpl::ResNetTrunkImpl(const ResNetConfig& config,
                                 const std::vector<std::int64_t>& strides)
    : config_(config), channels_(config.width) {
  check(config);
  require(strides.size() <= kGroups, "there are up to four groups", std::ssize(strides));
  const auto stem =
      config.has_small_stem ? square(3, channels_, 3) : square(3, channels_, 7, /*stride=*/2);
  stem_ = register_module("conv1", make_convolution(stem));
  stem_norm_ = register_module("bn1", make_norm(channels_, config));
  const auto& counts = blocks_by_depth().at(config.depth);
  for (std::size_t group = 0; group < strides.size(); ++group) {
    register_module("layer" + std::to_string(group + 1),
                    add_blocks(counts[group], config.width << group, strides[group]));
  }
}

torch::nn::ModuleList ResNetTrunkImpl::add_blocks(std::int64_t count, std::int64_t channels,
                                                  std::int64_t stride) {
  torch::nn::ModuleList list;
  for (std::int64_t i = 0; i < count; ++i) {
    const ResidualBlock block(config_, channels_, channels, i == 0 ? stride : 1);
    channels_ = block->num_outputs();
    list->push_back(block);
    blocks_.push_back(block);
  }
  return list;
}

torch::Tensor ResNetTrunkImpl::forward(const torch::Tensor& images_BCHW) {
  auto x = config_.is_channels_last ? images_BCHW.contiguous(torch::MemoryFormat::ChannelsLast)
                                    : images_BCHW;
  x = stem_norm_->relu(stem_(x));
  if (!config_.has_small_stem) x = torch::max_pool2d(x, 3, 2, 1);
  for (ResidualBlock& block : blocks_) x = block(x);
  return x;
}

ResNetImpl::ResNetImpl(const ResNetConfig& config) : ResNetTrunkImpl(config, {1, 2, 2, 2}) {
  head_ = register_module("fc", torch::nn::Linear(num_outputs(), config.num_classes));
  torch::nn::init::normal_(head_->weight, 0, 0.01);
  torch::nn::init::zeros_(head_->bias);
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& images_BCHW) {
  return head_(ResNetTrunkImpl::forward(images_BCHW).mean({2, 3}));
}

}  // namespace trireme::vision
