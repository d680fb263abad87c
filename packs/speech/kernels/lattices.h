#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::speech {

/// Shape of a batch of transducer lattices. Sample b is a grid of num_frames[b] frames and
/// num_labels[b] + 1 positions: at (t, u) frame t is read and u labels have been emitted. Tensors
/// have a row for each (b, t, u), in one of two forms:
///
///   padded   [B, T, U, row]: T = max_frames, U = max_labels + 1; rows outside a grid are padding
///   packed   [rows, row]: the rows of sample b, [num_frames[b], num_labels[b] + 1, row], begin at
///            row offsets[b]; no padding
struct Lattices {
  std::span<const std::int32_t> num_frames;  ///< [B] 1 or more.
  std::span<const std::int32_t> num_labels;  ///< [B] 0 or more; may exceed the frames.
  std::int64_t max_frames = 0;
  std::int64_t max_labels = 0;
  std::span<const std::int64_t> offsets;  ///< [B + 1] of the packed form; none: padded.

  std::int64_t num_samples() const { return std::ssize(num_frames); }
  bool is_packed() const { return !offsets.empty(); }

  /// U + 1 of sample b.
  std::int64_t num_positions(std::int64_t b) const { return std::int64_t{num_labels[b]} + 1; }

  /// Rows of a tensor, with its padding.
  std::int64_t num_rows() const;

  /// Where sample b begins, and rows from one of its frames to the next.
  std::int64_t first_row(std::int64_t b) const;
  std::int64_t frame_stride(std::int64_t b) const;
};

/// Offsets of the packed form: cumulative sums of num_frames[b] * (num_labels[b] + 1) from 0.
/// Lengths are not checked.
///
/// Errors   kInvalidArgument where there are not as many labels' lengths as frames', or where a sum
///          does not fit into 64 bits, with the sample.
std::vector<std::int64_t> packed_offsets(std::span<const std::int32_t> num_frames,
                                         std::span<const std::int32_t> num_labels);

/// Errors   kInvalidArgument, with the sample, where lengths do not fit the tensors' sizes, where a
///          sample has no frame (every alignment ends by a blank at the last one), or where offsets
///          are not those of `packed_offsets`.
void check(const Lattices& lattices);

}  // namespace trireme::speech
