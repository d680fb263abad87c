#pragma once

// The passes of transducer_joint.h.

#include <array>
#include <cstdint>
#include <string>

#include "packs/speech/cuda/transducer_grid.h"
#include "packs/speech/kernels/element.h"
#include "packs/speech/kernels/joint.h"
#include "trireme/base/random.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/dropout.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/half.h"

namespace trireme::speech::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

/// The options, checked.
struct JointTerms {
  explicit JointTerms(const JointSettings& options)
      : width(options.width),
        num_bytes(joint_mask_bytes(options.width)),
        dropout("joint", options.drop_probability, options.seed) {
    if (width >= 1) return;
    throw Error(ErrorKind::kInvalidArgument,
                "joint: expected a width of 1 or more, got " + std::to_string(width));
  }

  std::int64_t width;
  std::int64_t num_bytes;  ///< Of the mask; elements from one of its bits to the next.
  Dropout dropout;
};

/// Byte i % num_bytes of a row of the mask, and its 8 elements: they share a Philox counter.
template <typename T>
struct Join {
  Grid grid;
  JointTerms terms;
  const T* f;
  const T* g;
  T* out;
  std::uint8_t* mask;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [padded, byte] = divide(i, terms.num_bytes);
    const GridRow at = grid.at(padded);
    if (!at.is_in_grid) return clear(at, byte);
    const DeviceLattices& sizes = grid.lattices;
    const T* f_row = f + (at.sample * sizes.max_frames + at.frame) * terms.width;
    const T* g_row = g + (at.sample * (sizes.max_labels + 1) + at.position) * terms.width;
    std::array<std::uint32_t, 4> words{};
    if (terms.dropout.threshold > 0) {
      words = philox({static_cast<std::uint32_t>(byte), static_cast<std::uint32_t>(at.position),
                      static_cast<std::uint32_t>(at.frame), static_cast<std::uint32_t>(at.sample)},
                     terms.dropout.key);
    }
    std::uint32_t bits = 0;
    for (int v = 0; v < 8; ++v) {
      const std::int64_t h = v * terms.num_bytes + byte;
      if (h >= terms.width) break;
      const float sum = to_f32(f_row[h]) + to_f32(g_row[h]);
      const bool passes = !(sum <= 0.0F) && terms.dropout.keeps(words, v);  // NaN passes
      out[at.row * terms.width + h] =
          speech::internal::from_f32<T>(passes ? sum * terms.dropout.scale : 0.0F);
      bits |= passes ? 1U << v : 0U;
    }
    mask[at.row * terms.num_bytes + byte] = static_cast<std::uint8_t>(bits);
  }

  /// Padding becomes 0.
  TRIREME_HOST_DEVICE void clear(const GridRow& at, std::int64_t byte) const {
    if (grid.is_packed()) return;
    for (std::int64_t h = byte; h < terms.width; h += terms.num_bytes) {
      out[at.row * terms.width + h] = T{};
    }
  }
};

/// What element h of a row passes on.
template <typename T>
TRIREME_HOST_DEVICE float passed_on(const JointTerms& terms, const T* dout,
                                    const std::uint8_t* mask, std::int64_t row, std::int64_t h) {
  const auto [bit, byte] = divide(h, terms.num_bytes);
  const bool passes = (mask[row * terms.num_bytes + byte] >> bit & 1) != 0;
  return passes ? to_f32(dout[row * terms.width + h]) : 0.0F;
}

/// Element i of df.
template <typename T>
struct FrameGradient {
  Grid grid;
  JointTerms terms;
  const T* dout;
  const std::uint8_t* mask;
  float* df;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [line, h] = divide(i, terms.width);
    const auto [b, t] = divide(line, grid.lattices.max_frames);
    float sum = 0;
    const std::int64_t end = t < grid.lattices.num_frames[b] ? grid.num_positions(b) : 0;
    for (std::int64_t u = 0; u < end; ++u) {
      sum += passed_on(terms, dout, mask, grid.row_of(b, t, u), h);
    }
    df[i] = sum * terms.dropout.scale;
  }
};

/// Element i of dg.
template <typename T>
struct PositionGradient {
  Grid grid;
  JointTerms terms;
  const T* dout;
  const std::uint8_t* mask;
  float* dg;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [line, h] = divide(i, terms.width);
    const auto [b, u] = divide(line, grid.lattices.max_labels + 1);
    float sum = 0;
    const std::int64_t end = u <= grid.lattices.num_labels[b] ? grid.lattices.num_frames[b] : 0;
    for (std::int64_t t = 0; t < end; ++t) {
      sum += passed_on(terms, dout, mask, grid.row_of(b, t, u), h);
    }
    dg[i] = sum * terms.dropout.scale;
  }
};

template <typename T, typename Each>
void joint_passes(const DeviceLattices& lattices, const JointSettings& options, const T* f,
                  const T* g, T* out, std::uint8_t* mask, const Each& each) {
  const Grid grid{lattices};
  const JointTerms terms(options);
  each(grid.num_padded() * terms.num_bytes, Join<T>{grid, terms, f, g, out, mask});
}

template <typename T, typename Each>
void joint_backward_passes(const DeviceLattices& lattices, const JointSettings& options,
                           const T* dout, const std::uint8_t* mask, float* df, float* dg,
                           const Each& each) {
  const Grid grid{lattices};
  const JointTerms terms(options);
  each(lattices.num_samples * lattices.max_frames * terms.width,
       FrameGradient<T>{grid, terms, dout, mask, df});
  each(lattices.num_samples * (lattices.max_labels + 1) * terms.width,
       PositionGradient<T>{grid, terms, dout, mask, dg});
}

}  // namespace trireme::speech::cuda::internal
