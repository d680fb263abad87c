#include "trireme/kernels/cuda/launch.cuh"
#include "trireme/kernels/cuda/nms.h"
#include "trireme/kernels/cuda/nms_passes.h"
#include "trireme/kernels/cuda/roi_align.h"
#include "trireme/kernels/cuda/roi_align_passes.h"

namespace trireme::kernels::cuda {

using internal::OnStream;

void roi_align(const RoiAlignOptions& options, const FeatureShape& shape, const float* features,
               const float* regions, std::int64_t num_regions, float* out, CUstream_st* stream) {
  internal::roi_align_passes(options, shape, features, regions, num_regions, out,
                             OnStream{"roi_align", stream});
}

void roi_align_backward(const RoiAlignOptions& options, const FeatureShape& shape,
                        const float* gradient_out, const float* regions, std::int64_t num_regions,
                        float* gradient_features, std::span<std::byte> workspace,
                        CUstream_st* stream) {
  internal::roi_align_backward_passes(options, shape, gradient_out, regions, num_regions,
                                      gradient_features, workspace,
                                      OnStream{"roi_align_backward", stream});
}

std::int64_t roi_align_workspace_bytes(std::int64_t num_regions) {
  return internal::RoiSpace(internal::Cutter(), num_regions).bytes;
}

void fixed_nms(const NmsCandidates& candidates, double threshold, const NmsKept& kept,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::fixed_nms_passes(candidates, threshold, kept, workspace, OnStream{"fixed_nms", stream});
}

std::int64_t fixed_nms_workspace_bytes(std::int64_t n) {
  return internal::NmsSpace(internal::Cutter(), n).bytes;
}

}  // namespace trireme::kernels::cuda
