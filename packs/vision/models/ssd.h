#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "packs/vision/models/default_boxes.h"
#include "packs/vision/models/resnet.h"
#include "packs/vision/operators/ssd_loss.h"

namespace trireme::vision {

// Dims: B batch, C channels, H height, W width, A default boxes, K classes with background as class 0, M
// places for boxes in a sample.

/// Everything that an SSD depends on.
struct SsdConfig {
  std::int64_t size = 300;        ///< Of images, in pixels a side: 32 to 2048.
  std::int64_t depth = 34;        ///< Of the backbone: 18 or 34.
  std::int64_t width = 64;        ///< Channels of its stem, 8 or more.
  std::int64_t num_classes = 81;  ///< With background: 2 or more.
  bool has_fused_norms = true;
  bool is_channels_last = false;

  bool operator==(const SsdConfig&) const = default;
};

/// What an SSD says of each default box.
struct SsdOutput {
  torch::Tensor codes_BA4;   ///< Of its box, relative to it (kernels/ssd_matching.h: kSsdCoding).
  torch::Tensor logits_BAK;  ///< Of its class.
};

/// A level from the one before: 1 x 1, then 3 x 3 with stride 2 or without a border, each with norm and ReLU.
class SsdExtraImpl : public torch::nn::Module {
 public:
  struct Channels {
    std::int64_t in, inside, out;
  };
  SsdExtraImpl(const SsdConfig& config, const Channels& channels, bool is_halved);

  torch::Tensor forward(const torch::Tensor& x_BCHW);

 private:
  torch::nn::Conv2d narrow_{nullptr}, wide_{nullptr};
  FusedNorm narrow_norm_{nullptr}, wide_norm_{nullptr};
};
TORCH_MODULE(SsdExtra);

/// Single shot detector over a residual network: its first three groups, the third without a stride, make the
/// first level; each other level is made from the one before; two 3 x 3 convolutions on each say codes and
/// classes. Channels of the levels are 4, 8, 8, 4, 4, 4 times the width (256, 512, 512, 256, 256, 256). The
/// levels behind the backbone have norms, which MLPerf's reference has not.
///
/// Source   Liu et al., "SSD: single shot multibox detector", ECCV 2016, section 2.1, with MLPerf's backbone.
class SsdImpl : public torch::nn::Module {
 public:
  /// Errors   kInvalidArgument, naming the number, where one makes no model.
  explicit SsdImpl(const SsdConfig& config);

  /// images_BCHW   f32 [B, 3, size, size].
  SsdOutput forward(const torch::Tensor& images_BCHW);

  /// f32 [A, 4] x1, y1, x2, y2, as parts of the image's sides. Not trained.
  const torch::Tensor& default_boxes() const { return default_boxes_; }

  const SsdConfig& config() const { return config_; }

 private:
  SsdConfig config_;
  ResNetTrunk backbone_{nullptr};
  std::vector<SsdExtra> extras_;
  std::vector<torch::nn::Conv2d> code_heads_, class_heads_;
  torch::Tensor default_boxes_;
};
TORCH_MODULE(Ssd);

/// The parts of the loss, each a mean over the batch.
struct SsdLosses {
  torch::Tensor boxes;    ///< 0-dim
  torch::Tensor classes;  ///< 0-dim
};

/// Of each image with a box, divided by its number P of matched default boxes; of one without it is 0:
///
///     boxes   = 1/P sum over matched of smooth_l1(code - target)
///     classes = 1/P (sum over matched and hard negatives of cross-entropy)
///
/// Hard negatives are the background's default boxes with the largest cross-entropy.
///
/// boxes_BM4, labels_BM   as of BoxedImageSource.
/// Source                 Liu et al., equations 1 to 3; the mean by images is MLPerf's reference.
SsdLosses ssd_losses(const SsdOutput& output, const torch::Tensor& default_boxes,
                     const torch::Tensor& boxes_BM4, const torch::Tensor& labels_BM,
                     const SsdLossOptions& options = {});

}  // namespace trireme::vision
