#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/speech/kernels/lattices.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::speech {

/// What is to be recognised.
struct TransducerTargets {
  /// [B, max_labels]; those after num_labels[b] are not read.
  std::span<const std::int32_t> labels;
  std::int64_t vocabulary = 0;  ///< V, with the blank.
  std::int64_t blank = 0;
};

/// Transducer (RNN-T) loss of raw logits x, and its gradient, fused with the softmax over V:
///
///     p(t,u,k)   = exp(x(t,u,k)) / sum over j of exp(x(t,u,j))
///     b(t,u)     = log p(t,u,blank)                  frame t is done
///     l(t,u)     = log p(t,u,labels[u])              label u is emitted
///     alpha(t,u) = log(exp(alpha(t-1,u) + b(t-1,u)) + exp(alpha(t,u-1) + l(t,u-1)))
///     beta(t,u)  = log(exp(beta(t+1,u) + b(t,u)) + exp(beta(t,u+1) + l(t,u)))
///     alpha(0,0) = 0,  beta(T,U) = 0
///     loss       = -beta(0,0) = -(alpha(T-1,U) + b(T-1,U))
///     dx(t,u,k)  = g * exp(alpha(t,u) + loss) * (p(t,u,k) * exp(beta(t,u))
///                      - [k = blank] exp(b(t,u) + beta(t+1,u))
///                      - [k = labels[u]] exp(l(t,u) + beta(t,u+1)))
///
/// here with T frames and U labels of one sample, g = loss_gradient[b], and nothing outside the
/// grid.
///
/// logits     rows of V by `lattices`, f32 or bf16, read once by each pass.
/// workspace  transducer_workspace_bytes(lattices), aligned to 8: written by the forward, used up
///            by the backward.
/// loss       [B] f32.
/// loss_gradient  [B] f32, g.
/// gradient   as logits, and may be the same memory; rows of padding become 0.
/// Rounding   Sums over V in f32, 16 simd lanes per 1024 elements, these in f64; log-probabilities
///            in f32; alpha and beta in f64, but what the smaller of two terms adds in f32. The
///            loss is within 1e-6 of its size. All instruction sets give the same bits.
/// Special    A NaN or +infinity among a sample's logits makes its loss and gradient NaN, so a NaN
///            loss names the sample; others are not affected. Where no alignment is possible for
///            logits of -infinity the loss is infinity and the gradient NaN. More labels than
///            frames are valid: any number of labels can be emitted at one frame.
/// Errors     kInvalidArgument, with the sample, for what `check(lattices)` refuses and for a label
///            that is the blank or not in [0, V).
/// Threads    one piece per sample.
/// Cost       reads the logits twice, writes the gradient once: 12 bytes of memory per f32 logit
///            bound it. Workspace: 20 bytes for each of (T + U) x (U + 1) cells of a sample.
/// Source     Graves, "Sequence transduction with recurrent neural networks", 2012, sections 2.4
///            and 2.5; fused with softmax as in Li et al., "Improving RNN transducer modeling for
///            end-to-end speech recognition", ASRU 2019, section 3.
void transducer_loss(const Lattices& lattices, const TransducerTargets& targets,
                     const float* logits, std::span<std::byte> workspace, float* loss,
                     const kernels::Spread& spread = kernels::on_caller);
void transducer_loss(const Lattices& lattices, const TransducerTargets& targets,
                     const kernels::Bf16* logits, std::span<std::byte> workspace, float* loss,
                     const kernels::Spread& spread = kernels::on_caller);

/// The gradient, after a forward with the same logits and workspace.
void transducer_loss_backward(const Lattices& lattices, const TransducerTargets& targets,
                              const float* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, float* gradient,
                              const kernels::Spread& spread = kernels::on_caller);
void transducer_loss_backward(const Lattices& lattices, const TransducerTargets& targets,
                              const kernels::Bf16* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, kernels::Bf16* gradient,
                              const kernels::Spread& spread = kernels::on_caller);

/// Both, sample by sample: the same results, and the second pass finds more of its logits in cache.
void transducer_loss_and_gradient(const Lattices& lattices, const TransducerTargets& targets,
                                  const float* logits, std::span<std::byte> workspace,
                                  const float* loss_gradient, float* loss, float* gradient,
                                  const kernels::Spread& spread = kernels::on_caller);
void transducer_loss_and_gradient(const Lattices& lattices, const TransducerTargets& targets,
                                  const kernels::Bf16* logits, std::span<std::byte> workspace,
                                  const float* loss_gradient, float* loss, kernels::Bf16* gradient,
                                  const kernels::Spread& spread = kernels::on_caller);

std::int64_t transducer_workspace_bytes(const Lattices& lattices);

}  // namespace trireme::speech
