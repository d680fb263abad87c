#include "packs/volume/cuda/components.h"
#include "packs/volume/cuda/components_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::volume::cuda {

using kernels::cuda::internal::OnStream;

void connected_components(const VolumeShape& shape, const std::uint8_t* labels,
                          Connectivity connectivity, const ComponentsFound& found,
                          std::span<std::byte> workspace, CUstream_st* stream) {
  internal::components_passes(shape, labels, connectivity, found, workspace,
                              OnStream{"connected_components", stream});
}

void connected_components(const VolumeShape& shape, const std::int32_t* labels,
                          Connectivity connectivity, const ComponentsFound& found,
                          std::span<std::byte> workspace, CUstream_st* stream) {
  internal::components_passes(shape, labels, connectivity, found, workspace,
                              OnStream{"connected_components", stream});
}

std::int64_t components_workspace_bytes(const VolumeShape& shape) {
  return internal::ComponentsSpace(internal::Cutter(), shape).bytes;
}

}  // namespace trireme::volume::cuda
