#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "tests/models/models.h"
#include "tests/models/operators.h"

namespace trireme::shard::test {

/// Two convolutions, each with instance norm and ReLU, as in 3D U-Nets.
struct VolumeBlockImpl : torch::nn::Module {
  VolumeBlockImpl(int in, int out, int stride) {
    using torch::nn::Conv3d, torch::nn::Conv3dOptions;
    using torch::nn::InstanceNorm3d, torch::nn::InstanceNorm3dOptions;
    const auto norm = InstanceNorm3dOptions(out).affine(true);
    first = register_module(
        "first", Conv3d(Conv3dOptions(in, out, 3).stride(stride).padding(1).bias(false)));
    first_norm = register_module("first_norm", InstanceNorm3d(norm));
    second = register_module("second", Conv3d(Conv3dOptions(out, out, 3).padding(2).dilation(2)));
    second_norm = register_module("second_norm", InstanceNorm3d(norm));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return second_norm(second(torch::relu(first_norm(first(x))))).relu_();
  }

  torch::nn::Conv3d first{nullptr}, second{nullptr};
  torch::nn::InstanceNorm3d first_norm{nullptr}, second_norm{nullptr};
};
TORCH_MODULE(VolumeBlock);

/// Volumes of 14 slices, down to 7 by a convolution and to 3 by a pool, and up again by transposed convolutions; an edge of
/// each is missing where it is odd.
struct Volumes : torch::nn::Module {
  Volumes() {
    using torch::nn::ConvTranspose3d, torch::nn::ConvTranspose3dOptions;
    top = register_module("top", VolumeBlock(1, 4, 1));
    middle = register_module("middle", VolumeBlock(4, 6, 2));
    bottom = register_module("bottom", VolumeBlock(6, 8, 1));
    up_middle =
        register_module("up_middle", ConvTranspose3d(ConvTranspose3dOptions(8, 6, 3).stride(2)));
    join_middle = register_module("join_middle", VolumeBlock(12, 6, 1));
    up_top = register_module("up_top", ConvTranspose3d(ConvTranspose3dOptions(6, 4, 2).stride(2)));
    join_top = register_module("join_top", VolumeBlock(8, 4, 1));
    head = register_module("head", torch::nn::Conv3d(torch::nn::Conv3dOptions(4, 1, 1)));
  }

  torch::Tensor forward(const Batch& batch) {
    const auto high = top(batch["volume"]);
    const auto half = middle(high);
    const auto low = bottom(torch::max_pool3d(half, 3, 2, 0));
    const auto joined = join_middle(torch::cat({half, up_middle(low)}, 1));
    const auto all = join_top(torch::cat({up_top(joined), high}, 1));
    return torch::square(head(all) - batch["target"]).mean();
  }

  VolumeBlock top{nullptr}, middle{nullptr}, bottom{nullptr}, join_middle{nullptr},
      join_top{nullptr};
  torch::nn::ConvTranspose3d up_middle{nullptr}, up_top{nullptr};
  torch::nn::Conv3d head{nullptr};
};

/// Norms of the library's own, with a residual and ReLU, in bf16 as well.
struct OwnNorms : torch::nn::Module {
  OwnNorms() {
    using torch::nn::Conv2d, torch::nn::Conv2dOptions;
    first = register_module("first", Conv2d(Conv2dOptions(3, 6, 5).padding(2)));
    first_norm = register_module("first_norm", models::OwnNorm(6));
    second = register_module("second", Conv2d(Conv2dOptions(6, 6, 3).padding(1)));
    second_norm = register_module("second_norm", models::OwnNorm(6));
    scale = register_parameter("scale", torch::rand({6}) + 0.5);
    shift = register_parameter("shift", torch::rand({6}));
    head = register_module("head", torch::nn::Linear(6, 5));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x = first_norm(torch::max_pool2d(first(batch["image"]), 3, 1, 1));
    x = second_norm(second(x), x);
    x = operators::instance_norm(x, scale, shift, 1e-5, /*has_relu=*/true);
    return torch::nn::functional::cross_entropy(head(torch::avg_pool2d(x, 2).mean({2, 3})),
                                                batch["label"]);
  }

  torch::nn::Conv2d first{nullptr}, second{nullptr};
  models::OwnNorm first_norm{nullptr}, second_norm{nullptr};
  torch::Tensor scale, shift;
  torch::nn::Linear head{nullptr};
};

inline models::TestModel make_own_norms(Precision precision) {
  torch::manual_seed(17);
  return {with_precision(make_model(std::make_shared<OwnNorms>()), precision),
          models::make("resnet").make_batch};
}

inline models::TestModel make_volumes() {
  torch::manual_seed(13);
  return {make_model(std::make_shared<Volumes>()), [](std::int64_t size, std::uint64_t seed) {
            torch::manual_seed(seed);
            Batch batch;
            batch.set("volume", torch::randn({size, 1, 14, 6, 6}));
            batch.set("target", torch::randn({size, 1, 14, 6, 6}));
            return batch;
          }};
}

}  // namespace trireme::shard::test
