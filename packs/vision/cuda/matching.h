#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/vision/kernels/matching.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::vision::cuda {

/// [num_truth, num_anchors] in memory of a GPU.
struct DeviceOverlaps {
  const float* values = nullptr;
  std::int64_t num_truth = 0;
  std::int64_t num_anchors = 0;
};

/// Matching of kernels/matching.h for GPUs: the same matches. Overlaps are not checked: one that
/// is NaN matches nothing.
///
/// workspace   match_workspace_bytes(overlaps) of the stream's device, aligned to 16, not set; used
///             until the work is done.
/// Errors      kInvalidArgument where low > high, and for a workspace that is too small;
///             kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream.
/// Cost        reads the overlaps two or three times; a block of threads for each truth.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void match_anchors(const MatchOptions& options, const DeviceOverlaps& overlaps,
                   std::int64_t* matches, std::span<std::byte> workspace, CUstream_st* stream);
void match_ssd(float threshold, const DeviceOverlaps& overlaps, std::int64_t* matches,
               std::span<std::byte> workspace, CUstream_st* stream);

/// 2 KiB for each truth.
std::int64_t match_workspace_bytes(const DeviceOverlaps& overlaps);

}  // namespace trireme::vision::cuda
