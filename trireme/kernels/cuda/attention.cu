#include "trireme/kernels/cuda/attention.h"
#include "trireme/kernels/cuda/attention_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::kernels::cuda {

using internal::OnStream;

void attention(const DeviceSequences& sequences, const AttentionOptions& options, const float* q,
               const float* k, const float* v, float* out, float* log_sum,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::attention_passes(sequences, options, q, k, v, out, log_sum, workspace,
                             OnStream{"attention", stream});
}

void attention_backward(const DeviceSequences& sequences, const AttentionOptions& options,
                        const AttentionGradient& tensors, std::span<std::byte> workspace,
                        CUstream_st* stream) {
  internal::attention_backward_passes(sequences, options, tensors, workspace,
                                      OnStream{"attention_backward", stream});
}

std::int64_t attention_workspace_bytes(const DeviceSequences& sequences) {
  return internal::AttentionSpace(internal::Cutter(), internal::Heads(sequences, {})).bytes;
}

}  // namespace trireme::kernels::cuda
