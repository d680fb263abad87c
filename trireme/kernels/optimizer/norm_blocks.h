#pragma once

#include <algorithm>
#include <cstdint>

#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels::internal {

/// Of a thread's piece.
inline constexpr std::int64_t kPieceBlocks = 16;

inline std::int64_t count_norm_blocks(std::int64_t n) { return (n + kNormBlock - 1) / kNormBlock; }

/// Calls `body(block, begin, count)` for each norm block of n elements, on any thread.
template <typename Body>
void for_each_norm_block(std::int64_t n, const Spread& spread, const Body& body) {
  const std::int64_t num_blocks = count_norm_blocks(n);
  const auto run_piece = [&](std::int64_t piece) {
    const std::int64_t end = std::min((piece + 1) * kPieceBlocks, num_blocks);
    for (std::int64_t block = piece * kPieceBlocks; block < end; ++block) {
      const std::int64_t begin = block * kNormBlock;
      body(block, begin, std::min(kNormBlock, n - begin));
    }
  };
  if (num_blocks <= kPieceBlocks) return run_piece(0);
  spread((num_blocks + kPieceBlocks - 1) / kPieceBlocks, run_piece);
}

/// Calls `body(begin, count)` likewise, from the last to the first where there is one thread: for
/// the pass that follows the norms, since what they have read last is still in cache.
template <typename Body>
void for_each_norm_block_back(std::int64_t n, const Spread& spread, const Body& body) {
  const std::int64_t last = count_norm_blocks(n) - 1;
  const auto reversed = [&](std::int64_t block, std::int64_t, std::int64_t) {
    const std::int64_t begin = (last - block) * kNormBlock;
    body(begin, std::min(kNormBlock, n - begin));
  };
  for_each_norm_block(n, spread, reversed);
}

}  // namespace trireme::kernels::internal
