#pragma once

#include <torch/torch.h>

#include "trireme/model.h"

namespace trireme::models {

/// Two 3x3 convolutions with batch norm around a shortcut, as in ResNet-18.
struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(int in, int out, int stride) {
    using torch::nn::Conv2d, torch::nn::Conv2dOptions, torch::nn::BatchNorm2d;
    conv1 = register_module(
        "conv1", Conv2d(Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)));
    norm1 = register_module("norm1", BatchNorm2d(out));
    conv2 = register_module("conv2", Conv2d(Conv2dOptions(out, out, 3).padding(1).bias(false)));
    norm2 = register_module("norm2", BatchNorm2d(out));
    if (stride != 1 || in != out) {
      shortcut =
          register_module("shortcut", Conv2d(Conv2dOptions(in, out, 1).stride(stride).bias(false)));
      shortcut_norm = register_module("shortcut_norm", BatchNorm2d(out));
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = torch::relu(norm1(conv1(x)));
    y = norm2(conv2(y));
    y += shortcut ? shortcut_norm(shortcut(x)) : x;
    return y.relu_();
  }

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  torch::nn::BatchNorm2d norm1{nullptr}, norm2{nullptr}, shortcut_norm{nullptr};
};
TORCH_MODULE(BasicBlock);

/// ResNet-18's stages (2, 2, 2, 2) with few channels, on 16x16 images in channels-last layout.
struct ResNet : torch::nn::Module {
  ResNet() {
    using torch::nn::Conv2dOptions;
    stem = register_module("stem", torch::nn::Conv2d(Conv2dOptions(3, 8, 3).padding(1)));
    stem_norm = register_module("stem_norm", torch::nn::BatchNorm2d(8));
    int in = 8;
    for (int out : {8, 12, 16, 20}) {
      blocks->push_back(BasicBlock(in, out, out == 8 ? 1 : 2));
      blocks->push_back(BasicBlock(out, out, 1));
      in = out;
    }
    register_module("blocks", blocks);
    head = register_module("head", torch::nn::Linear(in, 5));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x = batch["image"].contiguous(torch::MemoryFormat::ChannelsLast);
    x = torch::relu(stem_norm(stem(x)));
    for (const auto& block : *blocks) x = block->as<BasicBlockImpl>()->forward(x);
    return torch::nn::functional::cross_entropy(head(x.mean({2, 3})), batch["label"]);
  }

  torch::nn::Conv2d stem{nullptr};
  torch::nn::BatchNorm2d stem_norm{nullptr};
  torch::nn::ModuleList blocks;
  torch::nn::Linear head{nullptr};
};

/// Three levels down and up; each level's output skips to the way up.
struct UNet : torch::nn::Module {
  UNet() {
    for (int level = 0; level < 3; ++level) {
      const int in = level == 0 ? 3 : 6 << (level - 1), out = 6 << level;
      down->push_back(convolution(in, out));
      if (level < 2) up->push_back(convolution(out + 2 * out, out));
    }
    register_module("down", down);
    register_module("up", up);
    head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 2, 1)));
  }

  static torch::nn::Conv2d convolution(int in, int out) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
  }

  torch::Tensor forward(const Batch& batch) {
    std::vector<torch::Tensor> skips;
    auto x = batch["image"];
    for (std::size_t level = 0; level < 3; ++level) {
      if (level > 0) x = torch::max_pool2d(x, 2);
      x = torch::relu(down[level]->as<torch::nn::Conv2d>()->forward(x));
      skips.push_back(x);
    }
    for (int level = 1; level >= 0; --level) {
      x = torch::upsample_nearest2d(x, {skips[level].size(2), skips[level].size(3)});
      x = torch::cat({skips[level], x}, 1);
      x = torch::leaky_relu(up[level]->as<torch::nn::Conv2d>()->forward(x), 0.1);
    }
    return torch::nn::functional::cross_entropy(head(x), batch["mask"]);
  }

  torch::nn::ModuleList down, up;
  torch::nn::Conv2d head{nullptr};
};

}  // namespace trireme::models
