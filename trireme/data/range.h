#pragma once

#include <cstdint>

namespace trireme::data {

/// Global indices [begin, end) of a sample order.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

/// A step's batch in numbers.
struct BatchNumbers {
  std::int64_t global_batch = 0;  ///< B
  std::int64_t microbatch = 0;    ///< b, divides B
};

/// Samples of microbatch m of a step that begins at global index `position`: m-th run of b of the
/// B. The next step begins at `position + B`; whoever starts at 0 has step * B.
///
/// Errors   kInvalidArgument where b does not divide B, m is not in [0, B/b) or position is
/// negative.
IndexRange microbatch_range(const BatchNumbers& batch, std::int64_t position, std::int64_t m);

/// Microbatches of one pass over `num_samples` that meets each sample once: ceil(num_samples / b).
std::int64_t num_evaluation_microbatches(std::int64_t num_samples, std::int64_t microbatch);

/// The m-th of them: b samples, the last one the remainder.
///
/// Errors   kInvalidArgument where m is not in [0, num_evaluation_microbatches).
IndexRange evaluation_range(std::int64_t num_samples, std::int64_t microbatch, std::int64_t m);

}  // namespace trireme::data
