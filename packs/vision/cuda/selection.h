#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::vision::cuda {

// Selections of kernels/selection.h for GPUs: the same results, nothing waits for a count.
//
// Arrays      memory of the stream's device. Losses are not checked: NaN counts as -infinity.
// count       [1], written: what the function there returns.
// workspace   selection_workspace_bytes(n) of the same device, permutation_workspace_bytes(n) for a
//             permutation; aligned to 16, not set; used until the work is done.
// Errors      kInvalidArgument for a ratio that is negative or NaN and for a workspace that is too
//             small; kUnavailable without CUDA, kIo where a launch fails.
// Blocking    no: work is put on the stream.
// State       Compiled, their passes tested on the host; they have not run on a GPU.

/// Cost   n^2 comparisons of losses: an anchor's rank is counted.
void mine_hard_negatives(const float* losses, const std::uint8_t* is_matched, std::int64_t n,
                         double ratio, std::uint8_t* is_chosen, std::int64_t* count,
                         std::span<std::byte> workspace, CUstream_st* stream);

/// places   [num_places]
/// Cost     reads the values twice.
void fixed_nonzero(const std::uint8_t* values, std::int64_t n, std::int64_t* places,
                   std::int64_t num_places, std::int64_t* count, std::span<std::byte> workspace,
                   CUstream_st* stream);

std::int64_t selection_workspace_bytes(std::int64_t n);

/// order   [n], written.
/// Cost    N log2(N)^2 / 4 exchanges of a bitonic network, N = n rounded up to a power of two. With
///         b = log2(N) - 11, b (b + 3) / 2 + 13 launches; 13 to 2048 indices, 67 to a million.
void random_permutation(std::uint64_t seed, std::int64_t* order, std::int64_t n,
                        std::span<std::byte> workspace, CUstream_st* stream);

/// 16 N.
std::int64_t permutation_workspace_bytes(std::int64_t n);

}  // namespace trireme::vision::cuda
