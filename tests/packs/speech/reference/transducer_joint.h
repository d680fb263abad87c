#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "packs/speech/kernels/joint.h"
#include "trireme/base/random.h"

namespace trireme::speech::reference {

/// Whether dropout keeps an element, as joint.h defines it.
inline bool keeps(const JointSettings& options, std::int64_t b, std::int64_t t, std::int64_t u,
                  std::int64_t h) {
  const std::int64_t n = joint_mask_bytes(options.width);
  const auto word = [](std::int64_t i) { return static_cast<std::uint32_t>(i); };
  const auto four =
      philox({word(h % n), word(u), word(t), word(b)},
             {word(static_cast<std::int64_t>(options.seed)), word(options.seed >> 32)});
  const std::int64_t v = h / n;
  const std::uint32_t half = v % 2 == 1 ? four[v / 2] >> 16 : four[v / 2] & 0xFFFFU;
  return half >= std::round(options.drop_probability * 65536);
}

/// joint and joint_backward as their header defines them, in arithmetic of T; no mask is kept.
template <typename T>
void joint(const Lattices& lattices, const JointSettings& options, const T* f, const T* g,
           const T* dout, T* out, T* df, T* dg) {
  const std::int64_t H = options.width;
  const std::int64_t U = lattices.max_labels + 1;
  const T scale =
      T{1} / (T{1} - static_cast<T>(std::round(options.drop_probability * 65536) / 65536));
  std::fill_n(out, lattices.num_rows() * H, T{0});
  std::fill_n(df, lattices.num_samples() * lattices.max_frames * H, T{0});
  std::fill_n(dg, lattices.num_samples() * U * H, T{0});
  for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
    for (std::int64_t t = 0; t < lattices.num_frames[b]; ++t) {
      for (std::int64_t u = 0; u <= lattices.num_labels[b]; ++u) {
        for (std::int64_t h = 0; h < H; ++h) {
          const std::int64_t i = (b * lattices.max_frames + t) * H + h;
          const std::int64_t j = (b * U + u) * H + h;
          const std::int64_t k = (lattices.first_row(b) + t * lattices.frame_stride(b) + u) * H + h;
          const T sum = f[i] + g[j];
          if (sum <= 0 || !keeps(options, b, t, u, h)) continue;
          out[k] = sum * scale;
          df[i] += dout[k] * scale;
          dg[j] += dout[k] * scale;
        }
      }
    }
  }
}

}  // namespace trireme::speech::reference
