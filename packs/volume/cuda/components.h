#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/volume/kernels/components.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::volume::cuda {

/// What is found, in memory of a GPU.
struct ComponentsFound {
  Component* components =
      nullptr;  ///< [most] the first ones; what is behind them is left as it is.
  std::int64_t most = 0;
  std::int64_t* count = nullptr;  ///< [1] of all components: it may be more than `most`.
  std::int32_t* map = nullptr;    ///< [voxels] as there; null: none.
};

/// connected_components of kernels/components.h for GPUs: the same components in the same order, and
/// the same map.
///
/// labels      [voxels], memory of the stream's device.
/// workspace   components_workspace_bytes(shape) of the same device, aligned to 16, not set; used
///             until the work is done.
/// Errors      kInvalidArgument for a shape as there and for a workspace that is too small;
///             kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream; nothing waits for the count.
/// Cost        6 launches, five of which go over labels and workspace. Unions grow with the
///             contacts of runs of equal labels along x, atomic additions to components with their
///             number; a run has 64 voxels at most.
/// Source      union-find without locks: Anderson and Woll, "Wait-free parallel algorithms for the
///             union-find problem", STOC 1991; for images on GPUs: Playne and Hawick, "A new
///             algorithm for parallel connected-component labelling on GPUs", 2018.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void connected_components(const VolumeShape& shape, const std::uint8_t* labels,
                          Connectivity connectivity, const ComponentsFound& found,
                          std::span<std::byte> workspace, CUstream_st* stream);
void connected_components(const VolumeShape& shape, const std::int32_t* labels,
                          Connectivity connectivity, const ComponentsFound& found,
                          std::span<std::byte> workspace, CUstream_st* stream);

/// 4.04 bytes for each voxel, and 2 KiB.
std::int64_t components_workspace_bytes(const VolumeShape& shape);

}  // namespace trireme::volume::cuda
