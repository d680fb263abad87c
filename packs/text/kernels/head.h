#pragma once

#include <array>
#include <cstdint>

namespace trireme::text::internal {

// One head of one sequence: what a piece of an attention call works on.

constexpr std::int64_t kQueries = 48;  ///< Rows of a block of scores: whole tiles and draws.
constexpr std::int64_t kKeys = 128;    ///< Columns of a block: what one Philox counter covers.
constexpr std::int64_t kDrawRows = 16;

struct Head {
  std::int64_t length;     ///< n, of the sequence.
  std::int64_t width;      ///< d
  std::int64_t num_heads;  ///< Rows are num_heads * width floats apart, log sums num_heads.
  float scale;             ///< 1 / sqrt(d)
  bool is_causal;
  const float* bias;  ///< [n rows, bias_stride] or null.
  std::int64_t bias_stride;

  std::int32_t drop_threshold;  ///< q * 2^16
  float keep_scale;             ///< 1 / (1 - q)
  std::array<std::uint32_t, 2> key;
  std::uint32_t stream;  ///< sequence * num_heads + head

  const float *q, *k, *v;  ///< Row 0 of this head.

  std::int64_t stride() const { return num_heads * width; }
};

struct HeadForward {
  float *out, *log_sum;
};

struct HeadBackward {
  const float *out, *log_sum, *gradient_out;
  float *gradient_q, *gradient_k, *gradient_v;
};

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Of one instruction set. workspace: aligned to 64 bytes, `forward_floats` or `backward_floats`.
struct AttentionLoops {
  void (*forward)(const Head& head, const HeadForward& tensors, float* workspace);
  void (*backward)(const Head& head, const HeadBackward& tensors, float* workspace);
};

/// Rows of blocks are this far apart: a multiple of 512 bytes would share few sets of a cache.
constexpr std::int64_t kBlockStride = kKeys + 16;

constexpr std::int64_t kDrawWords = 4 * 16 * kDrawRows;

/// k transposed, v, a row of blocks of scores, its output, and random words.
constexpr std::int64_t forward_floats(std::int64_t n, std::int64_t d) {
  const std::int64_t keys = rounded_up(n, kKeys), columns = rounded_up(d, 16);
  return keys / kKeys * columns * kBlockStride + keys * columns + kQueries * (keys + 16) +
         2 * kQueries * columns + kDrawWords;
}

/// q, gradients of out and q; of a block of keys k, k and v transposed, gradients of k and v; two
/// blocks; delta; random words.
constexpr std::int64_t backward_floats(std::int64_t n, std::int64_t d) {
  const std::int64_t queries = rounded_up(n, kQueries), columns = rounded_up(d, 16);
  return 3 * queries * columns + 2 * columns * kBlockStride + 3 * kBlockStride * columns +
         2 * kQueries * kBlockStride + rounded_up(queries, 16) + kDrawWords;
}

}  // namespace trireme::text::internal
