#pragma once

#include <torch/torch.h>

#include "packs/speech/operators/transducer.h"
#include "packs/text/operators/attention.h"
#include "packs/vision/operators/detection.h"
#include "trireme/engine/operators/batch_norm.h"
#include "trireme/engine/operators/cross_entropy.h"
#include "trireme/model.h"

namespace trireme::models {

/// A batch norm of ours, with Add and ReLU.
struct OwnNormImpl : torch::nn::Module {
  explicit OwnNormImpl(int channels) {
    tensors.weight = register_parameter("weight", torch::ones({channels}));
    tensors.bias = register_parameter("bias", torch::zeros({channels}));
    tensors.running_mean = register_buffer("running_mean", torch::zeros({channels}));
    tensors.running_var = register_buffer("running_var", torch::ones({channels}));
  }

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual = {}) {
    return operators::batch_norm(
        x, tensors, {.is_training = is_training(), .residual = residual, .has_relu = true});
  }

  operators::BatchNormTensors tensors;
};
TORCH_MODULE(OwnNorm);

/// The operators of ours that have a gradient, in their padded forms, with random draws and lengths
/// that differ: the nine cells of a region of an image are the frames of a transducer.
struct Operators : torch::nn::Module {
  Operators() {
    using torch::nn::Conv2d, torch::nn::Conv2dOptions, torch::nn::Linear;
    first = register_module("first", Conv2d(Conv2dOptions(3, 8, 3).padding(1)));
    first_norm = register_module("first_norm", OwnNorm(8));
    second = register_module("second", Conv2d(Conv2dOptions(8, 8, 3).padding(1)));
    second_norm = register_module("second_norm", OwnNorm(8));
    scale = register_parameter("scale", torch::ones({8}));
    projection = register_module("projection", Linear(8, 24));
    position = register_module("position", torch::nn::Embedding(6, 8));
    classes = register_module("classes", Linear(8, 6));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x = batch["image"].contiguous(torch::MemoryFormat::ChannelsLast);
    x = first_norm(first(x));
    x = second_norm(second(x), x);
    x = operators::instance_norm(x, scale, {});
    const auto index = torch::arange(x.size(0), torch::kFloat).unsqueeze(1);
    x = vision::roi_align(x, torch::cat({index, batch["box"]}, 1),
                          {.pooled_height = 3, .pooled_width = 3, .num_samples = 2});
    x = attended(x.flatten(2).transpose(1, 2), batch["num_frames"]);
    const double drop_probability = is_training() ? 0.1 : 0;
    const auto g = position(torch::constant_pad_nd(batch["labels"], {1, 0}));
    const speech::TransducerLengths lengths{batch["num_frames"], batch["num_labels"]};
    const auto frame_losses = operators::cross_entropy(
        x, batch["num_frames"].remainder(8).unsqueeze(1).expand({-1, x.size(1)}));
    const auto joint =
        speech::transducer_joint(x, g, lengths, {.drop_probability = drop_probability});
    const auto counts = torch::arange(x.size(1)).remainder(2);  // Every other frame.
    return speech::transducer_loss(classes(joint), batch["labels"], lengths).mean() +
           (frame_losses * counts).mean();
  }

  torch::Tensor attended(const torch::Tensor& x, const torch::Tensor& lengths) {
    const auto qkv = projection(x).view({x.size(0), x.size(1), 3, 2, 4}).unbind(2);
    const auto y = text::attention(
        qkv[0], qkv[1], qkv[2], {.lengths = lengths, .drop_probability = is_training() ? 0.1 : 0});
    return x + y.flatten(2);
  }

  torch::nn::Conv2d first{nullptr}, second{nullptr};
  OwnNorm first_norm{nullptr}, second_norm{nullptr};
  torch::Tensor scale;
  torch::nn::Linear projection{nullptr}, classes{nullptr};
  torch::nn::Embedding position{nullptr};
};

}  // namespace trireme::models
