#include "packs/text/cuda/attention.h"
#include "packs/text/cuda/attention_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::text::cuda {

using kernels::cuda::internal::OnStream;

void attention(const DeviceSequences& sequences, const AttentionSettings& options, const float* q,
               const float* k, const float* v, float* out, float* log_sum,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::attention_passes(sequences, options, q, k, v, out, log_sum, workspace,
                             OnStream{"attention", stream});
}

void attention_backward(const DeviceSequences& sequences, const AttentionSettings& options,
                        const AttentionGradient& tensors, std::span<std::byte> workspace,
                        CUstream_st* stream) {
  internal::attention_backward_passes(sequences, options, tensors, workspace,
                                      OnStream{"attention_backward", stream});
}

std::int64_t attention_workspace_bytes(const DeviceSequences& sequences) {
  return internal::AttentionSpace(internal::Cutter(), internal::Heads(sequences, {})).bytes;
}

}  // namespace trireme::text::cuda
