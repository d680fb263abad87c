#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/text/kernels/attention.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::text::cuda {

/// `AttentionShape` (kernels/attention.h) whose offsets are memory of a GPU. They are read there
/// and not checked.
struct DeviceSequences {
  const std::int64_t* offsets = nullptr;  ///< [num_sequences + 1] from 0, not descending.
  std::int64_t num_sequences = 0;
  std::int64_t num_tokens = 0;  ///< The last offset.
  std::int64_t max_length = 0;  ///< S; no sequence is longer.
  std::int64_t num_heads = 1;   ///< H
  std::int64_t width = 0;       ///< d, of a head.
};

/// Attention of kernels/attention.h for GPUs, in its plain form: scores go to the workspace. The
/// same formulas, layouts, random bits and order of additions, so the same bits, but for log_sum,
/// whose logarithm in f32 may differ in its last bits.
///
/// Arrays      memory of the stream's device, the bias too.
/// workspace   attention_workspace_bytes(sequences), aligned to 16, not set; used until the work is
///             done.
/// Errors      kInvalidArgument for sizes below 1, p outside [0, 1), a bias shorter than
///             max_length, a workspace that is too small; kUnavailable without CUDA, kIo where a
///             launch fails.
/// Blocking    no: work is put on the stream.
/// Cost        one thread for each score and each element of a result; no tensor cores. For shapes
///             that fit, not for speed.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void attention(const DeviceSequences& sequences, const AttentionSettings& options, const float* q,
               const float* k, const float* v, float* out, float* log_sum,
               std::span<std::byte> workspace, CUstream_st* stream);
void attention_backward(const DeviceSequences& sequences, const AttentionSettings& options,
                        const AttentionGradient& tensors, std::span<std::byte> workspace,
                        CUstream_st* stream);

/// 8 bytes for each of num_sequences x H x S^2 scores, 68 for each row of them.
std::int64_t attention_workspace_bytes(const DeviceSequences& sequences);

}  // namespace trireme::text::cuda
