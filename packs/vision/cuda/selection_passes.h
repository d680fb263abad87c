#pragma once

// The passes of selection.h.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "packs/vision/cuda/selection.h"
#include "packs/vision/kernels/selection.h"
#include "trireme/base/random.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/cuda/prefix_passes.h"

namespace trireme::vision::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

struct IsNotZero {
  const std::uint8_t* values;
  TRIREME_HOST_DEVICE bool operator()(std::int64_t i) const { return values[i] != 0; }
};

struct PlacePart {
  IsNotZero is_found;
  PrefixSpace space;
  std::int64_t* places;
  std::int64_t num_places;

  TRIREME_HOST_DEVICE void operator()(std::int64_t part) const {
    std::int64_t place = space.before[part];
    for (std::int64_t i = space.begin_of(part); i < space.end_of(part); ++i) {
      if (!is_found(i)) continue;
      if (place < num_places) places[place] = i;
      ++place;
    }
  }
};

/// Index num_places writes the count.
struct FillPlaces {
  const std::int64_t* found;
  std::int64_t* places;
  std::int64_t num_places;
  std::int64_t* count;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t used = *found < num_places ? *found : num_places;
    if (i == num_places) {
      *count = used;
    } else if (i >= used) {
      places[i] = used == 0 ? 0 : places[i % used];
    }
  }
};

/// Index n writes the count.
struct ChooseAnchor {
  const float* losses;
  const std::uint8_t* is_matched;
  std::int64_t n;
  double ratio;
  const std::int64_t* num_matched;
  std::uint8_t* is_chosen;
  std::int64_t* count;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t wanted = num_negatives();
    if (i == n) {
      *count = *num_matched + wanted;
    } else {
      is_chosen[i] = is_matched[i] != 0 || rank_of(i) < wanted ? 1 : 0;
    }
  }

  /// As the processors' kernel has it: infinity times no matches, NaN, is all.
  TRIREME_HOST_DEVICE std::int64_t num_negatives() const {
    const auto all = static_cast<double>(n - *num_matched);
    const double wanted = ratio * static_cast<double>(*num_matched);
    return static_cast<std::int64_t>(wanted < all ? wanted : all);
  }

  TRIREME_HOST_DEVICE float loss(std::int64_t i) const {
    return losses[i] == losses[i] ? losses[i] : -std::numeric_limits<float>::infinity();
  }

  /// How many negatives come before this one.
  TRIREME_HOST_DEVICE std::int64_t rank_of(std::int64_t i) const {
    const float own = loss(i);
    std::int64_t rank = 0;
    for (std::int64_t other = 0; other < n; ++other) {
      const float its = loss(other);
      rank += is_matched[other] == 0 && (its > own || (its == own && other < i));
    }
    return rank;
  }
};

template <typename Each>
void mine_hard_negatives_passes(const float* losses, const std::uint8_t* is_matched, std::int64_t n,
                                double ratio, std::uint8_t* is_chosen, std::int64_t* count,
                                std::span<std::byte> workspace, const Each& each) {
  vision::internal::check_ratio(ratio);
  const PrefixSpace space(Cutter(workspace), n);
  check_workspace("mine_hard_negatives", workspace, space.bytes);
  count_before_passes(IsNotZero{is_matched}, space, each);
  each(n + 1, ChooseAnchor{losses, is_matched, n, ratio, space.total(), is_chosen, count});
}

template <typename Each>
void fixed_nonzero_passes(const std::uint8_t* values, std::int64_t n, std::int64_t* places,
                          std::int64_t num_places, std::int64_t* count,
                          std::span<std::byte> workspace, const Each& each) {
  const PrefixSpace space(Cutter(workspace), n);
  check_workspace("fixed_nonzero", workspace, space.bytes);
  count_before_passes(IsNotZero{values}, space, each);
  each(space.num_parts, PlacePart{{values}, space, places, num_places});
  each(num_places + 1, FillPlaces{space.total(), places, num_places, count});
}

// ---- Permutation: (number, index) pairs, sorted by a bitonic network. At its level l, runs of
// 2^(l-1) sorted pairs become runs of 2^l: each place is compared with its mirror image in the run,
// then with the places 2^(l-2), ..., 2, 1 further:
//
//     4 2 7 5 . 6 1 0 3      level 1: 0-1 2-3 4-5 6-7
//     2 4 5 7 . 1 6 0 3      level 2: 0-3 1-2 4-7 5-6, then 0-1 2-3 4-5 6-7
//     2 4 5 7 . 0 1 3 6      level 3: 0-7 1-6 2-5 3-4, then 0-2 1-3 4-6 5-7, then neighbours
//
// The smaller of two always goes to the lower place.

struct PermutationSpace {
  PermutationSpace(Cutter cutter, std::int64_t n)
      : num_levels(n <= 2 ? 1 : 64 - std::countl_zero(static_cast<std::uint64_t>(n - 1))),
        numbers(cutter.take<std::uint64_t>(num_places())),
        indices(cutter.take<std::int64_t>(num_places())),
        bytes(cutter.bytes()) {}

  std::int64_t num_places() const { return std::int64_t{1} << num_levels; }

  int num_levels;
  std::uint64_t* numbers;  ///< [num_places]
  std::int64_t* indices;   ///< [num_places]
  std::int64_t bytes;
};

/// Four random numbers. Places from n on get the largest one: with their index they sort last.
struct DrawNumbers {
  std::array<std::uint32_t, 2> key;
  std::int64_t n;
  PermutationSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t four) const {
    const auto counter = static_cast<std::uint32_t>(four);
    const auto upper = philox({counter, 0, 0, 0}, key);
    const auto lower = philox({counter, 1, 0, 0}, key);
    for (int k = 0; k < 4 && 4 * four + k < space.num_places(); ++k) {
      put(4 * four + k, (std::uint64_t{upper[k]} << 32) | lower[k]);
    }
  }

  TRIREME_HOST_DEVICE void put(std::int64_t i, std::uint64_t number) const {
    space.numbers[i] = i < n ? number : ~std::uint64_t{0};
    space.indices[i] = i;
  }
};

/// A level's comparisons of places whose highest different bit is `bit`; as a pass of steps, then
/// those of the bits below it too.
struct ExchangePairs {
  PermutationSpace space;
  int level, bit;
  std::int64_t num_in_group;  ///< Comparisons, of a pass of steps.

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { exchange(i, bit); }
  TRIREME_HOST_DEVICE void operator()(std::int64_t group, std::int64_t step, std::int64_t i) const {
    exchange(group * num_in_group + i, bit - static_cast<int>(step));
  }

  /// Comparison i: of the place that has the bits of i around a 0.
  TRIREME_HOST_DEVICE void exchange(std::int64_t i, int bit) const {
    const std::int64_t distance = std::int64_t{1} << bit;
    const std::int64_t a = 2 * i - (i & (distance - 1));
    const std::int64_t b = a ^ (bit == level - 1 ? 2 * distance - 1 : distance);
    const std::uint64_t number_a = space.numbers[a], number_b = space.numbers[b];
    const std::int64_t index_a = space.indices[a], index_b = space.indices[b];
    if (number_a < number_b || (number_a == number_b && index_a < index_b)) return;
    space.numbers[a] = number_b;
    space.numbers[b] = number_a;
    space.indices[a] = index_b;
    space.indices[b] = index_a;
  }
};

struct CopyIndices {
  const std::int64_t* indices;
  std::int64_t* order;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { order[i] = indices[i]; }
};

/// Bits below kGroupBits are steps: a group has the places that those bits tell apart.
template <typename Each>
void sort_pairs_passes(const PermutationSpace& space, const Each& each) {
  constexpr int kGroupBits = 11;
  const std::int64_t num_pairs = space.num_places() / 2;
  const std::int64_t num_in_group = std::min(num_pairs, std::int64_t{1} << (kGroupBits - 1));
  for (int level = 1; level <= space.num_levels; ++level) {
    int bit = level - 1;
    for (; bit >= kGroupBits; --bit) each(num_pairs, ExchangePairs{space, level, bit, 0});
    each.steps({num_pairs / num_in_group, bit + 1, num_in_group},
               ExchangePairs{space, level, bit, num_in_group});
  }
}

template <typename Each>
void random_permutation_passes(std::uint64_t seed, std::int64_t* order, std::int64_t n,
                               std::span<std::byte> workspace, const Each& each) {
  const PermutationSpace space(Cutter(workspace), n);
  check_workspace("random_permutation", workspace, space.bytes);
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  each((space.num_places() + 3) / 4, DrawNumbers{key, n, space});
  sort_pairs_passes(space, each);
  each(n, CopyIndices{space.indices, order});
}

}  // namespace trireme::vision::cuda::internal
