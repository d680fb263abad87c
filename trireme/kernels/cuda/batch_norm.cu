#include "trireme/kernels/cuda/batch_norm.h"
#include "trireme/kernels/cuda/batch_norm_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::kernels::cuda {
namespace {

internal::SumValues with_stream(const SumOnStream& sum, CUstream_st* stream) {
  if (!sum) return nullptr;
  return [&sum, stream](std::span<double> values) { sum(values, stream); };
}

}  // namespace

void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForward& arrays, std::span<std::byte> workspace,
                        CUstream_st* stream, const SumOnStream& sum) {
  internal::batch_norm_forward_passes(options, shape, arrays, workspace, with_stream(sum, stream),
                                      internal::OnStream{"batch_norm_forward", stream});
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arrays,
                         std::span<std::byte> workspace, CUstream_st* stream,
                         const SumOnStream& sum) {
  internal::batch_norm_backward_passes(shape, arrays, workspace, with_stream(sum, stream),
                                       internal::OnStream{"batch_norm_backward", stream});
}

std::int64_t batch_norm_workspace_bytes(const BatchNormShape& shape) {
  return internal::NormWorkspace(internal::Cutter(), shape).bytes;
}

}  // namespace trireme::kernels::cuda
