#pragma once

#include <cstdint>

namespace trireme::speech::cuda {

/// `Lattices` (kernels/lattices.h) whose lengths are memory of a GPU. They are read there and
/// not checked: `check` the host's before they are copied.
struct DeviceLattices {
  const std::int32_t* num_frames = nullptr;  ///< [B] 1 to max_frames.
  const std::int32_t* num_labels = nullptr;  ///< [B] 0 to max_labels.
  std::int64_t num_samples = 0;              ///< B
  std::int64_t max_frames = 0;
  std::int64_t max_labels = 0;
  const std::int64_t* offsets = nullptr;  ///< [B + 1] of the packed form; null: padded.
};

}  // namespace trireme::speech::cuda
