#pragma once

#include <cstdint>

#include "packs/volume/kernels/shape.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::volume::cuda {

/// WindowWeights (kernels/sliding_window.h) of a device.
struct DeviceWindowWeights {
  VolumeShape patch;
  const float* factors;  ///< WindowWeights::factors(), in memory of the device.
  float smallest;
};

// Windows of kernels/sliding_window.h for GPUs: the same sums, means and labels, the same bits.
//
// Arrays      memory of the stream's device, laid out as there.
// Errors      kInvalidArgument for shapes, positions and numbers of classes as there; kUnavailable
//             without CUDA, kIo where a launch fails. Values are not checked: a voxel in no window
//             has the mean NaN, and a score that is NaN counts as -infinity.
// Blocking    no: work is put on the stream; windows add in its order.
// Cost        one launch each, which reads and writes an array once.
// State       Compiled, their passes tested on the host; they have not run on a GPU.

/// Adds a window to `sum` and `norm`, which are zeros before the first.
void accumulate_window(const DeviceWindowWeights& weights, const VolumeShape& volume,
                       const Voxel& begin, std::int64_t num_classes, const float* logits,
                       float* sum, float* norm, CUstream_st* stream);

void average_windows(const VolumeShape& volume, std::int64_t num_classes, const float* norm,
                     float* sum, CUstream_st* stream);

void argmax_classes(const VolumeShape& volume, std::int64_t num_classes, const float* scores,
                    std::uint8_t* labels, CUstream_st* stream);

}  // namespace trireme::volume::cuda
