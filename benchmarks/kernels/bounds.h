#pragma once

namespace trireme::kernels::bench {

/// What this machine can do at best, measured now.
struct Bounds {
  /// Read and written, by the fastest of: reading four arrays of 64 MiB, a scaled sum of two,
  /// updating three by a fourth. No kernel whose arrays are not in caches should do better.
  double bytes_per_s = 0;
  double flops_per_s = 0;  ///< Of fused multiply-adds of f32, two each.
};

/// Takes about a second.
Bounds measure_bounds(int num_threads);

}  // namespace trireme::kernels::bench
