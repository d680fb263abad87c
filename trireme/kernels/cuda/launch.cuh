#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "trireme/base/cuda/check.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::kernels::cuda::internal {

inline constexpr int kThreads = 256;

template <typename Pass>
__global__ void __launch_bounds__(kThreads)
    run_pass(const __grid_constant__ Pass pass, std::int64_t n) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += stride) {
    pass(i);
  }
}

/// A block for each group; block 0 takes group 0, then group gridDim.x and so on.
template <typename Pass>
__global__ void __launch_bounds__(kThreads)
    run_steps(const __grid_constant__ Pass pass, const StepSizes sizes) {
  for (std::int64_t group = blockIdx.x; group < sizes.num_groups; group += gridDim.x) {
    for (std::int64_t step = 0; step < sizes.num_steps; ++step) {
      for (std::int64_t i = threadIdx.x; i < sizes.num_indices; i += kThreads) {
        pass(group, step, i);
      }
      __syncthreads();  // also makes what was written seen by the block
    }
  }
}

/// Runs passes (passes.h) one after the other on a stream of the current device.
struct OnStream {
  const char* operation;
  CUstream_st* stream;

  template <typename Pass>
  void operator()(std::int64_t n, const Pass& pass) const {
    static_assert(std::is_trivially_copyable_v<Pass>);  // it becomes a kernel's parameter
    if (n <= 0) return;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const std::int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
    run_pass<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(pass, n);
    trireme::cuda::check(cudaGetLastError(), operation);
  }

  template <typename Pass>
  void steps(const StepSizes& sizes, const Pass& pass) const {
    if (sizes.num_groups <= 0) return;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const std::int64_t blocks = std::min(sizes.num_groups, kMostBlocks);
    run_steps<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(pass, sizes);
    trireme::cuda::check(cudaGetLastError(), operation);
  }
};

}  // namespace trireme::kernels::cuda::internal
