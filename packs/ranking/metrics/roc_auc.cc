#include "packs/ranking/metrics/roc_auc.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "packs/ranking/metrics/pairs.h"
#include "packs/ranking/metrics/parted_scores.h"
#include "packs/ranking/metrics/sorted_scores.h"
#include "trireme/error.h"

namespace trireme::ranking {
namespace {

__extension__ typedef unsigned __int128 Wide;
using Items = std::span<const std::uint32_t>;

/// Twice the pairs of which the positive is above, a tie being one: with them and the number of all
/// pairs.
double quotient(Wide twice_above, std::uint64_t num_positives, std::uint64_t num_negatives) {
  if (num_positives == 0 || num_negatives == 0) {
    throw Error(ErrorKind::kInvalidArgument, "ROC AUC: all labels are " +
                                                 std::to_string(num_positives == 0 ? 0 : 1) +
                                                 ", expected both classes");
  }
  const Wide pairs = static_cast<Wide>(num_positives) * num_negatives;
  return static_cast<double>(twice_above) / static_cast<double>(2 * pairs);
}

// ---- Over ranks. A key is an item without its label, with a bit above it: 0 below zero.

/// Negatives and positives of 2^width keys.
using Counts = std::array<std::uint64_t, 2>;

constexpr std::array<int, 6> kLevelBits = {12, 4, 4, 4, 4, 4};  // 32, the bits of a key
constexpr std::size_t kSlotsAtATime = 1 << 15;

/// Adds this rank's scores whose keys are `first` and up to the slots' end.
void count(const SortedScores& sorted, std::uint64_t first, int width, std::span<Counts> slots) {
  const std::uint64_t end = first + (std::uint64_t{slots.size()} << width);
  for (std::uint64_t half = 0; half < 2; ++half) {
    const Items items = half == 0 ? sorted.below_zero() : sorted.others();
    const auto key = [half](std::uint32_t item) { return half << 31 | item >> 1; };
    for (auto i = std::ranges::lower_bound(items, first, {}, key);
         i != items.end() && key(*i) < end; ++i) {
      ++slots[(key(*i) - first) >> width][*i & 1];
    }
  }
}

/// What is known so far.
struct Refinement {
  Wide twice_above = 0;
  std::vector<std::uint32_t> mixed;  ///< First keys of slots whose inner pairs are not in it.

  /// slots   of all ranks together.
  void add(std::uint32_t first, int width, std::span<const Counts> slots) {
    std::uint64_t negatives = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto [here, positives] = slots[i];
      twice_above += 2 * static_cast<Wide>(positives) * negatives;
      negatives += here;
      if (width == 0) {
        twice_above += static_cast<Wide>(positives) * here;
      } else if (positives > 0 && here > 0) {
        mixed.push_back(first + static_cast<std::uint32_t>(i << width));
      }
    }
  }
};

/// Sorts this rank's scores; all learn whether each could. all: negatives and positives of all.
std::unique_ptr<const SortedScores> sort_together(std::span<float> scores,
                                                  std::span<const std::uint8_t> labels,
                                                  CountGroup& group, const kernels::Spread& spread,
                                                  Counts& all) {
  std::unique_ptr<const SortedScores> sorted;
  std::exception_ptr error;
  try {
    sorted = std::make_unique<SortedScores>(scores, labels, spread);
  } catch (...) {
    error = std::current_exception();
  }
  const auto num_positives = static_cast<std::uint64_t>(std::ranges::count(labels, 1));
  std::array<std::uint64_t, 3> facts = {error ? 1U : 0U, labels.size() - num_positives,
                                        num_positives};
  group.sum(facts);
  const auto [num_bad, negatives, positives] = facts;
  all = {negatives, positives};
  if (error) std::rethrow_exception(error);
  if (num_bad > 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "ROC AUC: " + std::to_string(num_bad) + " other ranks have bad input");
  }
  return sorted;
}

}  // namespace

double roc_auc(std::span<float> scores, std::span<const std::uint8_t> labels,
               const kernels::Spread& spread) {
  constexpr std::uint32_t kBucketsOfPiece = 32;
  const PartedScores parted(scores, labels, spread);
  std::array<Pairs, PartedScores::kBuckets / kBucketsOfPiece> pieces;
  const kernels::Spread& used =
      kernels::spread_or_caller(spread, std::ssize(scores), PartedScores::kWorthThreads);
  used(std::ssize(pieces), [&](std::int64_t piece) {
    const auto first = static_cast<std::uint32_t>(piece) * kBucketsOfPiece;
    for (std::uint32_t b = first; b < first + kBucketsOfPiece; ++b) {
      const auto items = parted.bucket(b);
      pieces[piece].add(items, scores.subspan(parted.begin(b), items.size()));
    }
  });
  Pairs pairs;
  for (const Pairs& piece : pieces) pairs.append(piece);
  return quotient(2 * static_cast<Wide>(pairs.above_or_equal) - pairs.equal, pairs.num_positives,
                  pairs.num_negatives);
}

double roc_auc(std::span<float> scores, std::span<const std::uint8_t> labels, CountGroup& group,
               const kernels::Spread& spread) {
  Counts all{};
  const auto sorted = sort_together(scores, labels, group, spread, all);
  Refinement refinement{.mixed = {0}};
  int width = 32;
  for (const int bits : kLevelBits) {
    width -= bits;
    const std::size_t num_slots = std::size_t{1} << bits, step = kSlotsAtATime / num_slots;
    const std::vector<std::uint32_t> firsts = std::exchange(refinement.mixed, {});
    for (std::size_t begin = 0; begin < firsts.size(); begin += step) {
      const auto some = std::span(firsts).subspan(begin, std::min(step, firsts.size() - begin));
      std::vector<Counts> slots(some.size() * num_slots);
      const auto slots_of = [&](std::size_t i) {
        return std::span(slots).subspan(i * num_slots, num_slots);
      };
      for (std::size_t i = 0; i < some.size(); ++i) count(*sorted, some[i], width, slots_of(i));
      group.sum({slots.data()->data(), 2 * slots.size()});
      for (std::size_t i = 0; i < some.size(); ++i) {
        refinement.add(some[i], width, slots_of(i));
      }
    }
  }
  return quotient(refinement.twice_above, all[1], all[0]);
}

}  // namespace trireme::ranking
