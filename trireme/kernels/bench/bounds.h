#pragma once

namespace trireme::kernels::bench {

/// What this machine can do at best, measured now.
struct Bounds {
  double bytes_per_s = 0;  ///< Read and written by a scaled sum of two arrays of 64 MiB.
  double flops_per_s = 0;  ///< Of fused multiply-adds of f32, two each.
};

/// Takes about 0.3 s.
Bounds measure_bounds(int num_threads);

}  // namespace trireme::kernels::bench
