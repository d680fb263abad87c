#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/spread.h"

namespace trireme::text {

/// Sequences of different lengths, behind each other: sequence b has the tokens
/// offsets[b] .. offsets[b + 1].
struct AttentionShape {
  std::span<const std::int64_t> offsets;  ///< One more than sequences; the first is 0.
  std::int64_t num_heads = 1;             ///< H
  std::int64_t width = 0;                 ///< d, of a head.
};

struct AttentionSettings {
  bool is_causal = false;        ///< A query attends to keys up to its own position alone.
  double drop_probability = 0;   ///< p, in [0, 1).
  std::uint64_t seed = 0;        ///< Of this call's dropout: stream_seed(...) or NodeStream.
  const float* bias = nullptr;   ///< [H, bias_length, bias_length], for every sequence; or none.
  std::int64_t bias_length = 0;  ///< S; no sequence is longer.
};

/// Fused multi-head attention: no matrix of scores goes to memory. For a sequence of n tokens and
/// a head, with rows i and j of q, k and v,
///
///     s(i,j) = q(i) . k(j) / sqrt(d) + bias(i,j)      j < n; j <= i if causal
///     L(i)   = log of the sum over j of e^s(i,j)
///     o(i)   = sum over j of e^(s(i,j) - L(i)) * keep(i,j) / (1 - q) * v(j)
///     keep(i,j) = 0 with probability q = p rounded to a multiple of 2^-16
///
/// keep comes from 16 bits of Philox4x32-10 (base/random.h): with v = j % 128 / 16, half v % 2 (0:
/// the lower) of word v / 2 of philox({i % 16 * 16 + j % 16, i / 16, j / 128, b * H + h}, seed);
/// the element is dropped where that is less than q * 2^16. The backward draws it again.
///
/// q, k, v  [tokens, H, d]. bias may hold -infinity where a key is not attended to; a query that
///          attends to none gives NaN.
/// out      [tokens, H, d]; log_sum [tokens, H]: L, for the backward.
/// Rounding f32. Sums over d and j are chains of fused multiply-adds in ascending order, so bits
///          depend neither on instruction sets nor threads nor other sequences.
/// Errors   kInvalidArgument: offsets that do not start at 0 or that descend, sizes below 1, p
///          outside [0, 1), a sequence longer than the bias.
/// Threads  one piece per head of a sequence, with 4 n (2 d + 56) bytes of workspace, roughly.
/// Cost     4 n^2 d operations a head, n^2 exponentials; half of both if causal.
/// Source   Dao et al., FlashAttention, 2022: blocks that stay in a cache, L in place of
///          probabilities. A row's scores are whole here, so its maximum is exact.
void attention(const AttentionShape& shape, const AttentionSettings& options, const float* q,
               const float* k, const float* v, float* out, float* log_sum,
               const kernels::Spread& spread = kernels::on_caller);

/// What the forward read and made, the gradient of `out`, and what the backward makes.
struct AttentionGradient {
  const float *q, *k, *v;
  const float *out, *log_sum;
  const float* gradient_out;
  float *gradient_q, *gradient_k, *gradient_v;
};

/// Gradients of q, k and v; the bias has none. With P(i,j) = e^(s(i,j) - L(i)) from scores computed
/// again, z = keep / (1 - q), and D(i) = gradient_out(i) . out(i),
///
///     gradient_v(j) = sum over i of P(i,j) z(i,j) gradient_out(i)
///     ds(i,j)       = P(i,j) (z(i,j) gradient_out(i) . v(j) - D(i))
///     gradient_q(i) = sum over j of ds(i,j) k(j) / sqrt(d)
///     gradient_k(j) = sum over i of ds(i,j) q(i) / sqrt(d)
///
/// Options, rounding, errors and threads as above; 12 n d + 2880 d bytes and 64 KiB of workspace.
/// Cost     10 n^2 d operations a head, n^2 exponentials; half of both if causal.
void attention_backward(const AttentionShape& shape, const AttentionSettings& options,
                        const AttentionGradient& tensors,
                        const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::text
