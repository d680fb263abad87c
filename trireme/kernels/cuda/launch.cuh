#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "trireme/base/cuda/check.h"

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

/// Runs passes (passes.h) one after the other on a stream of the current device.
struct OnStream {
  const char* operation;
  CUstream_st* stream;

  template <typename Pass>
  void operator()(std::int64_t n, const Pass& pass) const {
    if (n <= 0) return;
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const std::int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
    run_pass<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(pass, n);
    trireme::cuda::check(cudaGetLastError(), operation);
  }
};

}  // namespace trireme::kernels::cuda::internal
