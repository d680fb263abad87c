#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trireme::speech {

/// Lengths of the samples of a batch, integers [B] each.
struct TransducerLengths {
  at::Tensor num_frames;  ///< 1 or more.
  at::Tensor num_labels;  ///< 0 or more.
};

struct JointOptions {
  double drop_probability = 0;
  /// Rows behind each other without padding: the result's shape depends on the lengths, so it
  /// cannot be recorded.
  bool is_packed = false;
};

/// The transducer's joint, dropout(relu(f + g)) of every frame with every position; formula, order
/// of packed rows and cost in kernels/joint.h.
///
/// f        f32 or bf16 [B, T, H]
/// g        the same type [B, U + 1, H]
/// Returns  the same type [B, T, U + 1, H], 0 in padding; or [rows, H].
/// Errors   kInvalidArgument, naming the sample whose lengths do not fit.
at::Tensor transducer_joint(const at::Tensor& f, const at::Tensor& g,
                            const TransducerLengths& lengths, const JointOptions& options = {});

/// The transducer loss of each sample, straight from logits; kernels/loss.h.
///
/// logits   f32 or bf16 [B, T, U + 1, V], or packed [rows, V].
/// labels   integers [B, U]
/// Returns  f32 [B]
/// Errors   kInvalidArgument, naming the sample: lengths that do not fit, labels that are the blank
///          or not in [0, V).
at::Tensor transducer_loss(const at::Tensor& logits, const at::Tensor& labels,
                           const TransducerLengths& lengths, std::int64_t blank = 0);

}  // namespace trireme::speech
