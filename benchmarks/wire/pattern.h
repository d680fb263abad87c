#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "benchmarks/wire/cases.h"

namespace trireme::bench {

/// What ranks give to an operation whose result is checked. Computed from rank and position alone,
/// so that every rank knows what every other gave.
enum class Pattern : std::uint8_t {
  kWhole,  ///< Whole numbers from 0 to 7: sums are exact in any order.
  kReal,   ///< Of many magnitudes: sums round, so that their bits tell the order.
};

/// Fills a rank's buffer of f32 or f64; kInvalidArgument for another dtype.
void fill(std::span<std::byte> buffer, Dtype dtype, Pattern pattern, int rank);

/// Fills it with what no result holds.
void fill_with_wrong(std::span<std::byte> buffer);

/// Who checks a result of ranks that gave Pattern::kWhole; of a broadcast, rank 0 is the root.
struct Checker {
  Case what;
  int rank = 0;
  int num_ranks = 1;

  /// What the result of the operation has at `index` of the larger buffer.
  double expected(std::int64_t index) const;

  /// Elements of `result` that are not as expected, or that it should have and has not; a
  /// reduce_scatter has as many as it says.
  ///
  /// first   position of result's begin in the larger buffer.
  std::int64_t count_wrong(std::span<const std::byte> result, std::int64_t first) const;
};

}  // namespace trireme::bench
