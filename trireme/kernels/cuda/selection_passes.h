#pragma once

// The passes of selection.h.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/cuda/selection.h"
#include "trireme/kernels/detection/selection.h"

namespace trireme::kernels::cuda::internal {

constexpr std::int64_t kSelectionPart = 256;

/// Elements of a part that are not 0.
struct CountPart {
  const std::uint8_t* values;
  std::int64_t n;
  std::int64_t* counts;

  TRIREME_HOST_DEVICE void operator()(std::int64_t part) const {
    std::int64_t count = 0;
    for (std::int64_t i = part * kSelectionPart; i < end_of(part, n); ++i) count += values[i] != 0;
    counts[part] = count;
  }

  TRIREME_HOST_DEVICE static std::int64_t end_of(std::int64_t part, std::int64_t n) {
    const std::int64_t end = (part + 1) * kSelectionPart;
    return end < n ? end : n;
  }
};

/// counts[part] becomes what is before it; counts[num_parts], what is in all.
struct AddParts {
  std::int64_t num_parts;
  std::int64_t* counts;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    std::int64_t sum = 0;
    for (std::int64_t part = 0; part < num_parts; ++part) {
      const std::int64_t own = counts[part];
      counts[part] = sum;
      sum += own;
    }
    counts[num_parts] = sum;
  }
};

struct PlacePart {
  const std::uint8_t* values;
  std::int64_t n;
  const std::int64_t* before;
  std::int64_t* places;
  std::int64_t num_places;

  TRIREME_HOST_DEVICE void operator()(std::int64_t part) const {
    std::int64_t place = before[part];
    for (std::int64_t i = part * kSelectionPart; i < CountPart::end_of(part, n); ++i) {
      if (values[i] == 0) continue;
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

struct SelectionSpace {
  SelectionSpace(Cutter cutter, std::int64_t n)
      : num_parts(count_parts(n, kSelectionPart)),
        counts(cutter.take<std::int64_t>(num_parts + 1)),
        bytes(cutter.bytes()) {}

  std::int64_t num_parts;
  std::int64_t* counts;
  std::int64_t bytes;
};

template <typename Each>
void mine_hard_negatives_passes(const float* losses, const std::uint8_t* is_matched, std::int64_t n,
                                double ratio, std::uint8_t* is_chosen, std::int64_t* count,
                                std::span<std::byte> workspace, const Each& each) {
  kernels::internal::check_ratio(ratio);
  const SelectionSpace space(Cutter(workspace), n);
  check_workspace("mine_hard_negatives", workspace, space.bytes);
  each(space.num_parts, CountPart{is_matched, n, space.counts});
  each(1, AddParts{space.num_parts, space.counts});
  each(n + 1, ChooseAnchor{losses, is_matched, n, ratio, space.counts + space.num_parts, is_chosen,
                           count});
}

template <typename Each>
void fixed_nonzero_passes(const std::uint8_t* values, std::int64_t n, std::int64_t* places,
                          std::int64_t num_places, std::int64_t* count,
                          std::span<std::byte> workspace, const Each& each) {
  const SelectionSpace space(Cutter(workspace), n);
  check_workspace("fixed_nonzero", workspace, space.bytes);
  each(space.num_parts, CountPart{values, n, space.counts});
  each(1, AddParts{space.num_parts, space.counts});
  each(space.num_parts, PlacePart{values, n, space.counts, places, num_places});
  each(num_places + 1, FillPlaces{space.counts + space.num_parts, places, num_places, count});
}

}  // namespace trireme::kernels::cuda::internal
