#pragma once

// Which row of a transducer's tensors an index of a pass is about.

#include <cstdint>

#include "packs/speech/cuda/transducer_lattices.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::speech::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

/// A place of the padded grid [B, max_frames, max_labels + 1].
struct GridRow {
  std::int64_t sample, frame, position;
  std::int64_t row;     ///< Of the tensors; of no meaning in the packed form outside a grid.
  bool is_in_grid;      ///< Else padding.
  std::int64_t padded;  ///< Index in the padded grid.
};

struct Grid {
  DeviceLattices lattices;

  /// Also of the packed form: indices outside a grid have nothing to do.
  std::int64_t num_padded() const {
    return lattices.num_samples * lattices.max_frames * (lattices.max_labels + 1);
  }

  TRIREME_HOST_DEVICE bool is_packed() const { return lattices.offsets != nullptr; }

  TRIREME_HOST_DEVICE std::int64_t num_positions(std::int64_t sample) const {
    return std::int64_t{lattices.num_labels[sample]} + 1;
  }

  TRIREME_HOST_DEVICE std::int64_t row_of(std::int64_t sample, std::int64_t frame,
                                          std::int64_t position) const {
    if (is_packed()) {
      return lattices.offsets[sample] + frame * num_positions(sample) + position;
    }
    return (sample * lattices.max_frames + frame) * (lattices.max_labels + 1) + position;
  }

  TRIREME_HOST_DEVICE GridRow at(std::int64_t padded) const {
    const auto [line, position] = divide(padded, lattices.max_labels + 1);
    const auto [sample, frame] = divide(line, lattices.max_frames);
    return {sample,
            frame,
            position,
            row_of(sample, frame, position),
            frame < lattices.num_frames[sample] && position <= lattices.num_labels[sample],
            padded};
  }
};

}  // namespace trireme::speech::cuda::internal
