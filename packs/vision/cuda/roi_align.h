#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/vision/kernels/roi_align.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::vision::cuda {

/// RoIAlign of kernels/roi_align.h for GPUs: the same formulas, layouts and order of additions,
/// so the same bits.
///
/// Arrays      memory of the stream's device. Regions are not checked: one that is refused there
///             gives 0 and takes no gradient.
/// workspace   roi_align_workspace_bytes(num_regions) of the same device, aligned to 16, not set;
///             used until the work is done.
/// Errors      kInvalidArgument for options that are refused there and for a workspace that is too
///             small; kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream.
/// Cost        forward: 4 samples^2 reads for each output. Backward: each pixel looks at every
///             region whether it reaches it, and adds what does; no atomic additions, so results
///             repeat.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void roi_align(const RoiAlignSettings& options, const FeatureShape& shape, const float* features,
               const float* regions, std::int64_t num_regions, float* out, CUstream_st* stream);
void roi_align_backward(const RoiAlignSettings& options, const FeatureShape& shape,
                        const float* gradient_out, const float* regions, std::int64_t num_regions,
                        float* gradient_features, std::span<std::byte> workspace,
                        CUstream_st* stream);

/// Of the backward: 80 bytes for each region.
std::int64_t roi_align_workspace_bytes(std::int64_t num_regions);

}  // namespace trireme::vision::cuda
