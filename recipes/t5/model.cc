#include "recipes/t5/model.h"

#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <cmath>

#include "packs/text/operators/segments.h"

namespace trireme::recipes::t5 {
namespace {

/// Each target one place later, kPad first: what the decoder sees of them.
torch::Tensor shifted(const torch::Tensor& targets_BT) {
  return torch::constant_pad_nd(targets_BT.slice(1, 0, -1), {1, 0}, kPad);
}

}  // namespace

T5Impl::T5Impl(const Config& config) : config_(config) {
  check(config);
  embedding_ =  // of unit variance, as torch makes it
      register_module("embedding", torch::nn::Embedding(config.vocabulary, config.d_model));
  encoder_ = register_module("encoder", Encoder(config));
  decoder_ = register_module("decoder", Decoder(config));
  if (config.variant == Variant::kV11) {
    const ProjectionPart all{config.vocabulary, std::pow(config.d_model, -0.5)};
    head_ = register_module("head", Projection(config.d_model, std::vector{all}));
  }
}

torch::Tensor T5Impl::forward(const torch::Tensor& inputs_BS, const torch::Tensor& targets_BT) {
  return decode(shifted(targets_BT), encode(inputs_BS), inputs_BS);
}

torch::Tensor T5Impl::forward_rows(const torch::Tensor& inputs_BS, const torch::Tensor& segments_BS,
                                   const torch::Tensor& targets_BMT) {
  const std::int64_t num_samples = targets_BMT.size(1), length = targets_BMT.size(2);
  const auto numbers_M1 = torch::arange(1, num_samples + 1, segments_BS.options()).unsqueeze(1);
  const auto segments_1U = numbers_M1.expand({num_samples, length}).flatten().unsqueeze(0);
  const auto seen_BU = shifted(targets_BMT.flatten(0, 1)).view_as(targets_BMT).flatten(1);
  const auto memory_BSC =
      encoder_(embedding_(inputs_BS), text::segment_bias(segments_BS, segments_BS));
  return logits(decoder_(embedding_(seen_BU), memory_BSC,
                         text::segment_bias(segments_1U, segments_BS),
                         text::segment_bias(segments_1U, segments_1U)));
}

TargetLoss T5Impl::loss(const torch::Tensor& inputs_BS, const torch::Tensor& targets_BT) {
  return target_loss(forward(inputs_BS, targets_BT), targets_BT);
}

TargetLoss target_loss(const torch::Tensor& logits_BTV, const torch::Tensor& targets_BT) {
  const auto logits_NV = logits_BTV.flatten(0, 1);
  const auto targets_N = targets_BT.flatten().to(torch::kLong);
  const auto sum = torch::nn::functional::cross_entropy(
      logits_NV, targets_N,
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kPad).reduction(torch::kSum));
  return {sum, (targets_N != kPad).sum().to(torch::kFloat)};
}

torch::Tensor T5Impl::encode(const torch::Tensor& inputs_BS) {
  return encoder_(embedding_(inputs_BS), pad_bias(inputs_BS));
}

torch::Tensor T5Impl::decode(const torch::Tensor& tokens_BT, const torch::Tensor& memory_BSC,
                             const torch::Tensor& inputs_BS) {
  return logits(decoder_(embedding_(tokens_BT), memory_BSC, pad_bias(inputs_BS)));
}

/// What attention to the inputs gains by padding, [B, 1, 1, S]; undefined where it is not masked.
/// Finite, so that inputs of nothing but padding do not make NaN.
torch::Tensor T5Impl::pad_bias(const torch::Tensor& inputs_BS) const {
  if (!config_.masks_padding) return {};
  const auto bias_BS = (inputs_BS == kPad).to(torch::kFloat) * text::no_attention();
  return bias_BS.unsqueeze(1).unsqueeze(1);
}

torch::Tensor T5Impl::logits(const torch::Tensor& x_BTC) {
  if (head_) return head_(x_BTC);
  const double scale = std::pow(config_.d_model, -0.5);
  return torch::nn::functional::linear(x_BTC * scale, embedding_->weight);
}

}  // namespace trireme::recipes::t5
