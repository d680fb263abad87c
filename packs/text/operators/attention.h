#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::text {

struct AttentionOptions {
  /// Of the padded form, [B] integers: tokens from there on are padding. Undefined: none is.
  at::Tensor lengths = {};
  /// [H, length, length] f32, added to the scores of every sequence; it gets no gradient.
  at::Tensor bias = {};
  bool is_causal = false;
  double drop_probability = 0;
};

/// Multi-head attention, softmax(q k^T / sqrt(D) + bias) v with dropout, in one pass; formula,
/// rounding and cost in kernels/attention.h.
///
/// query, key, value   f32 or bf16 [B, S, H, D], all of one type; the arithmetic is f32.
/// Returns             the same type [B, S, H, D]; rows of padding are 0.
/// Errors              kInvalidArgument for other types and shapes, lengths outside of [0, S].
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options = {});

/// The same for sequences behind each other, without padding.
///
/// query, key, value   f32 or bf16 [tokens, H, D].
/// offsets             [B + 1] integers: sequence b has the tokens offsets[b] .. offsets[b + 1].
at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& offsets, const AttentionOptions& options = {});

}  // namespace trireme::text
