#pragma once

// How many elements before one have a property: they are counted by parts, and the counts added up.
// Whoever goes through a part knows then where its first one comes.

#include <cstdint>

#include "trireme/kernels/cuda/passes.h"

namespace trireme::kernels::cuda::internal {

constexpr std::int64_t kPrefixPart = 256;
constexpr std::int64_t kPrefixLanes = 256;

struct PrefixSpace {
  PrefixSpace(Cutter cutter, std::int64_t n)
      : n(n),
        num_parts(count_parts(n, kPrefixPart)),
        before(cutter.take<std::int64_t>(num_parts + 1)),
        sums(cutter.take<std::int64_t>(kPrefixLanes)),
        bytes(cutter.bytes()) {}

  TRIREME_HOST_DEVICE std::int64_t begin_of(std::int64_t part) const { return part * kPrefixPart; }
  TRIREME_HOST_DEVICE std::int64_t end_of(std::int64_t part) const {
    const std::int64_t end = (part + 1) * kPrefixPart;
    return end < n ? end : n;
  }
  const std::int64_t* total() const { return before + num_parts; }

  std::int64_t n, num_parts;
  std::int64_t* before;  ///< [num_parts + 1] in what comes before a part; the last: in all.
  std::int64_t* sums;    ///< [kPrefixLanes]
  std::int64_t bytes;
};

/// Elements i of a part for which has(i).
template <typename Has>
struct CountPart {
  Has has;
  PrefixSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t part) const {
    std::int64_t count = 0;
    for (std::int64_t i = space.begin_of(part); i < space.end_of(part); ++i) count += has(i);
    space.before[part] = count;
  }
};

/// Counts become what is before: each lane adds up its share of the parts, the first lane adds
/// those sums, and each lane goes through its share again.
struct AddParts {
  static constexpr std::int64_t kSteps = 3;

  PrefixSpace space;
  std::int64_t share;  ///< Parts of a lane.

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t step,
                                      std::int64_t lane) const {
    if (step == 0) {
      space.sums[lane] = add_share(lane, 0, false);
    } else if (step == 2) {
      add_share(lane, space.sums[lane], true);
    } else if (lane == 0) {
      std::int64_t sum = 0;
      for (std::int64_t other = 0; other < kPrefixLanes; ++other) {
        const std::int64_t own = space.sums[other];
        space.sums[other] = sum;
        sum += own;
      }
      space.before[space.num_parts] = sum;
    }
  }

  TRIREME_HOST_DEVICE std::int64_t add_share(std::int64_t lane, std::int64_t sum,
                                             bool replaces) const {
    const std::int64_t end = (lane + 1) * share;
    for (std::int64_t part = lane * share; part < end && part < space.num_parts; ++part) {
      const std::int64_t own = space.before[part];
      if (replaces) space.before[part] = sum;
      sum += own;
    }
    return sum;
  }
};

template <typename Has, typename Each>
void count_before_passes(const Has& has, const PrefixSpace& space, const Each& each) {
  each(space.num_parts, CountPart<Has>{has, space});
  each.steps({1, AddParts::kSteps, kPrefixLanes},
             AddParts{space, count_parts(space.num_parts, kPrefixLanes)});
}

}  // namespace trireme::kernels::cuda::internal
