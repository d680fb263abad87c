#pragma once

#include <algorithm>
#include <cstdint>

#include "trireme/kernels/norm/norm.h"

namespace trireme::kernels::internal {

/// Calls `body(begin, count)` for each norm block of n elements.
template <typename Body>
void for_each_norm_block(std::int64_t n, const Body& body) {
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    body(begin, std::min(kNormBlock, n - begin));
  }
}

/// The same from the last to the first: for the pass that follows the norms, since what they have
/// read last is still in cache.
template <typename Body>
void for_each_norm_block_back(std::int64_t n, const Body& body) {
  for (std::int64_t end = n; end > 0;) {
    const std::int64_t begin = (end - 1) / kNormBlock * kNormBlock;
    body(begin, end - begin);
    end = begin;
  }
}

}  // namespace trireme::kernels::internal
