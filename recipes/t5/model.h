#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "recipes/t5/config.h"
#include "recipes/t5/projection.h"
#include "recipes/t5/stack.h"

namespace trireme::recipes::t5 {

// Dims: B batch, S input positions, T target positions, C channels, V vocabulary; M samples of a row at most.

/// Stands where a sequence has no token, and before the first target. Never a target.
inline constexpr std::int64_t kPad = 0;

/// Cross-entropy of a batch; the loss is sum / weight.
struct TargetLoss {
  torch::Tensor sum;     ///< 0-dim, nats over the targets that are no padding.
  torch::Tensor weight;  ///< 0-dim f32, their number.
};

/// logits_BTV   of the targets, as T5Impl::forward gives them.
TargetLoss target_loss(const torch::Tensor& logits_BTV, const torch::Tensor& targets_BT);

/// The encoder-decoder transformer T5. An ordinary module: it runs on one device and knows of
/// nothing else.
///
/// Initial weights are those of the paper's code: normal, a standard deviation per matrix such that
/// activations have unit variance.
///
/// Source   Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text
///          transformer", JMLR 21 (2020), section 2.1.
class T5Impl : public torch::nn::Module {
 public:
  /// Errors   those of `check`.
  explicit T5Impl(const Config& config);

  /// inputs_BS, targets_BT   tokens, i32 or i64.
  /// Returns                 logits [B, T, V] of each target given the inputs and targets before
  /// it.
  torch::Tensor forward(const torch::Tensor& inputs_BS, const torch::Tensor& targets_BT);

  TargetLoss loss(const torch::Tensor& inputs_BS, const torch::Tensor& targets_BT);

  /// `forward` of rows that hold several samples (data::pack): each sees itself alone.
  ///
  /// inputs_BS, segments_BS   tokens, and of which sample each is, from 1 on; 0: padding.
  /// targets_BMT              of sample m at m.
  /// Returns                  logits [B, M x T, V].
  torch::Tensor forward_rows(const torch::Tensor& inputs_BS, const torch::Tensor& segments_BS,
                             const torch::Tensor& targets_BMT);

  /// The first half of `forward`: [B, S, C].
  torch::Tensor encode(const torch::Tensor& inputs_BS);

  /// The second: logits of the token after each of `tokens_BT`, which begin with kPad.
  torch::Tensor decode(const torch::Tensor& tokens_BT, const torch::Tensor& memory_BSC,
                       const torch::Tensor& inputs_BS);

  const Config& config() const { return config_; }

 private:
  torch::Tensor pad_bias(const torch::Tensor& inputs_BS) const;
  torch::Tensor logits(const torch::Tensor& x_BTC);

  Config config_;
  torch::nn::Embedding embedding_{nullptr};
  Encoder encoder_{nullptr};
  Decoder decoder_{nullptr};
  Projection head_{nullptr};  ///< v1.1 only.
};
TORCH_MODULE(T5);

}  // namespace trireme::recipes::t5
