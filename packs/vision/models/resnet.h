#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "packs/vision/models/norm.h"

namespace trireme::vision {

// Dims: B batch, C channels, H height, W width, K classes.

/// Everything that a residual network depends on.
struct ResNetConfig {
  std::int64_t depth = 50;  ///< 18 or 34: blocks of two convolutions; 50: of three.
  /// Channels of the stem, 8 or more; each of the four groups of blocks has twice those of the last.
  std::int64_t width = 64;
  std::int64_t num_classes = 1000;
  /// For images of some 32 pixels: the stem is a 3 x 3 convolution alone, and the image keeps its size; else
  /// 7 x 7 and a pooling, which leave a quarter of each side.
  bool has_small_stem = false;
  /// By operators::batch_norm; else by torch's: equal but for rounding.
  bool has_fused_norms = true;
  /// Samples of a microbatch whose statistics norms take together in training; 0: all of it. Fused norms alone.
  std::int64_t norm_samples = 0;
  /// Images are brought to this layout, in which all else then is.
  bool is_channels_last = false;

  bool operator==(const ResNetConfig&) const = default;
};

/// kInvalidArgument, naming the number, where one makes no model.
void check(const ResNetConfig& config);

/// Convolutions without bias, each with its norm, around a shortcut: 3 x 3 twice, or 1 x 1, 3 x 3, 1 x 1 with
/// four times the channels at the end. The stride is in the (first) 3 x 3 one.
class ResidualBlockImpl : public torch::nn::Module {
 public:
  /// in, channels   of the input, and inside of the block.
  ResidualBlockImpl(const ResNetConfig& config, std::int64_t in, std::int64_t channels,
                    std::int64_t stride);

  torch::Tensor forward(const torch::Tensor& x_BCHW);

  std::int64_t num_outputs() const { return outputs_; }

 private:
  /// Names count from 1: conv1, bn1.
  void add(const torch::nn::Conv2dOptions& options, const ResNetConfig& config);

  std::int64_t outputs_ = 0;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<FusedNorm> norms_;
  torch::nn::Conv2d shortcut_{nullptr};  ///< None where the shape does not change.
  FusedNorm shortcut_norm_{nullptr};
};
TORCH_MODULE(ResidualBlock);

/// ResNet v1.5 up to its groups of blocks: stem, then a group for each stride; what detectors put their own
/// layers behind. Parameters have torchvision's names and shapes. The last norm of each block begins with scale
/// 0.
///
/// Source   He et al., "Deep residual learning for image recognition", CVPR 2016, table 1; v1.5 (the stride of
///          blocks of three is in the 3 x 3 convolution) and the norms' beginning: Goyal et al., arXiv
///          1706.02677, section 5.1.
class ResNetTrunkImpl : public torch::nn::Module {
 public:
  /// strides   of the groups, up to four; those of classification are 1, 2, 2, 2.
  /// Errors    those of `check`.
  ResNetTrunkImpl(const ResNetConfig& config, const std::vector<std::int64_t>& strides);

  /// images_BCHW   f32 [B, 3, H, W], sides of at least a pixel.
  /// Returns       [B, num_outputs(), ...]
  torch::Tensor forward(const torch::Tensor& images_BCHW);

  std::int64_t num_outputs() const { return channels_; }

 private:
  torch::nn::ModuleList add_blocks(std::int64_t count, std::int64_t channels, std::int64_t stride);

  ResNetConfig config_;
  std::int64_t channels_ = 0;  ///< Of what was added last.
  torch::nn::Conv2d stem_{nullptr};
  FusedNorm stem_norm_{nullptr};
  std::vector<ResidualBlock> blocks_;
};
TORCH_MODULE(ResNetTrunk);

/// ResNet v1.5 for classification, with torchvision's names and shapes of parameters.
class ResNetImpl : public ResNetTrunkImpl {
 public:
  /// Errors   those of `check`.
  explicit ResNetImpl(const ResNetConfig& config);

  /// images_BCHW   f32 [B, 3, H, W], sides of at least a pixel.
  /// Returns       logits [B, K].
  torch::Tensor forward(const torch::Tensor& images_BCHW);

 private:
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace trireme::vision
