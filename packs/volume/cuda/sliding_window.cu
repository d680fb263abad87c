#include "packs/volume/cuda/sliding_window.h"
#include "packs/volume/cuda/sliding_window_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::volume::cuda {

using kernels::cuda::internal::OnStream;

void accumulate_window(const DeviceWindowWeights& weights, const VolumeShape& volume,
                       const Voxel& begin, std::int64_t num_classes, const float* logits,
                       float* sum, float* norm, CUstream_st* stream) {
  internal::accumulate_window_passes(weights, volume, begin, num_classes, logits, sum, norm,
                                     OnStream{"accumulate_window", stream});
}

void average_windows(const VolumeShape& volume, std::int64_t num_classes, const float* norm,
                     float* sum, CUstream_st* stream) {
  internal::average_windows_passes(volume, num_classes, norm, sum,
                                   OnStream{"average_windows", stream});
}

void argmax_classes(const VolumeShape& volume, std::int64_t num_classes, const float* scores,
                    std::uint8_t* labels, CUstream_st* stream) {
  internal::argmax_classes_passes(volume, num_classes, scores, labels,
                                  OnStream{"argmax_classes", stream});
}

}  // namespace trireme::volume::cuda
