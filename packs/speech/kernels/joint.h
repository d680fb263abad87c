#pragma once

#include <cstdint>
#include <vector>

#include "packs/speech/kernels/lattices.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::speech {

struct JointSettings {
  std::int64_t width = 0;       ///< H
  double drop_probability = 0;  ///< p, in [0, 1).
  std::uint64_t seed = 0;       ///< Of this call's dropout: stream_seed(...) or NodeStream.
};

/// The transducer's joint: every frame with every position, through ReLU and dropout.
///
///     out(b,t,u,h) = keep(b,t,u,h) * max(0, f(b,t,h) + g(b,u,h)) / (1 - q)
///     keep(b,t,u,h) = 0 with probability q = p rounded to a multiple of 2^-16
///
/// keep comes from 16 bits an element of Philox4x32-10: with n = joint_mask_bytes(H), i = h % n and
/// v = h / n, half v % 2 (0: the lower) of word v / 2 of philox({i, u, t, b}, seed); the element is
/// dropped where that is less than q * 2^16. So it depends neither on the form, padded or packed,
/// nor on lengths, instruction set or threads.
///
/// f        [B, max_frames, H]; g [B, max_labels + 1, H]; what lies outside a grid is not read.
/// out      [rows of `lattices`, H]; rows of padding become 0.
/// mask     [rows, n]: which elements of `out` pass gradients on. Bit v of byte i of a row is
///          element v * n + i. Rows of padding are left as they are.
/// Rounding f + g and the product by 1 / (1 - q) in f32, each rounded once. A NaN stays, unless
///          dropped.
/// Errors   kInvalidArgument: what `check(lattices)` refuses, a width below 1, p outside [0, 1).
/// Threads  one piece per sample.
/// Cost     writes `out` once: 4 bytes and 1 bit per element. Dropout adds 0.4 ns per element.
void joint(const Lattices& lattices, const JointSettings& options, const float* f, const float* g,
           float* out, std::uint8_t* mask, const kernels::Spread& spread = kernels::on_caller);
void joint(const Lattices& lattices, const JointSettings& options, const kernels::Bf16* f,
           const kernels::Bf16* g, kernels::Bf16* out, std::uint8_t* mask,
           const kernels::Spread& spread = kernels::on_caller);

/// Gradients of f and g, in one pass over that of `out`:
///
///     df(b,t,h) = sum over u of dout(b,t,u,h) * [bit of the mask] / (1 - q), u ascending
///     dg(b,u,h) = sum over t of the same, t ascending
///
/// df, dg   as f and g, but f32; 0 outside the grids. Sums in f32, multiplied by 1 / (1 - q) last.
/// Cost     reads dout and mask once.
void joint_backward(const Lattices& lattices, const JointSettings& options, const float* dout,
                    const std::uint8_t* mask, float* df, float* dg,
                    const kernels::Spread& spread = kernels::on_caller);
void joint_backward(const Lattices& lattices, const JointSettings& options,
                    const kernels::Bf16* dout, const std::uint8_t* mask, float* df, float* dg,
                    const kernels::Spread& spread = kernels::on_caller);

/// Bytes of the mask for one row of `width` elements: an eighth, rounded up to whole vectors.
constexpr std::int64_t joint_mask_bytes(std::int64_t width) { return (width + 127) / 128 * 16; }

}  // namespace trireme::speech
