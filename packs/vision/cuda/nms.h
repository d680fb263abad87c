#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::vision::cuda {

/// What suppression looks at, in memory of a GPU.
struct NmsCandidates {
  const float* boxes = nullptr;           ///< [n, 4] x1, y1, x2, y2.
  const float* scores = nullptr;          ///< [n] NaN counts as -infinity.
  const std::int64_t* classes = nullptr;  ///< [n]; null: all are of one.
  std::int64_t n = 0;
};

/// What is kept, in memory of a GPU.
struct NmsKept {
  std::int64_t* boxes = nullptr;  ///< [capacity] indices; those behind the valid ones are 0.
  std::int64_t* count = nullptr;  ///< [1] how many are valid.
  std::int64_t capacity = 0;
};

/// fixed_nms of kernels/nms.h for GPUs: the same boxes in the same order. Boxes are not checked.
///
/// workspace   fixed_nms_workspace_bytes(n) of the stream's device, aligned to 16, not set; used
///             until the work is done.
/// Errors      kInvalidArgument for a threshold that is NaN and a workspace that is too small;
///             kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream, for graphs whose shapes may not change.
/// Cost        n^2 comparisons of scores, n^2 / 2 overlaps, n^2 / 8 bytes of workspace; the greedy
///             choice takes 64 boxes at a time, in one block of threads.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void fixed_nms(const NmsCandidates& candidates, double threshold, const NmsKept& kept,
               std::span<std::byte> workspace, CUstream_st* stream);

std::int64_t fixed_nms_workspace_bytes(std::int64_t n);

}  // namespace trireme::vision::cuda
