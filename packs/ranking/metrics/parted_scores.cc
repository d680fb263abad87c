#include "packs/ranking/metrics/parted_scores.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::ranking {
namespace {

using Scores = std::span<const float>;
using Labels = std::span<const std::uint8_t>;

TRIREME_INLINE_LOOP std::uint32_t magnitude_loop(Scores scores) {
  std::uint32_t largest = 0;
  for (const float score : scores) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(score) & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

TRIREME_AVX2 std::uint32_t magnitude_avx2(Scores scores) { return magnitude_loop(scores); }

TRIREME_INLINE_LOOP std::uint8_t bits_loop(Labels labels) {
  std::uint8_t bits = 0;
  for (const std::uint8_t label : labels) bits |= label;
  return bits;
}

TRIREME_AVX2 std::uint8_t bits_avx2(Labels labels) { return bits_loop(labels); }

/// The largest magnitude.
float check(Scores scores, Labels labels) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorKind::kInvalidArgument, "ROC AUC: " + why);
  };
  if (scores.size() != labels.size()) {
    refuse(std::to_string(scores.size()) + " scores, but " + std::to_string(labels.size()) +
           " labels");
  }
  if (scores.size() > std::numeric_limits<std::uint32_t>::max()) {
    refuse(std::to_string(scores.size()) + " scores; more than 2^32 - 1 need several ranks");
  }
  if ((kernels::has_avx2() ? bits_avx2(labels) : bits_loop(labels)) > 1) {
    const auto bad = std::ranges::find_if(labels, [](std::uint8_t label) { return label > 1; });
    refuse("label " + std::to_string(bad - labels.begin()) + " is " + std::to_string(*bad) +
           ", expected 0 or 1");
  }
  const std::uint32_t largest =
      kernels::has_avx2() ? magnitude_avx2(scores) : magnitude_loop(scores);
  if (largest > std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity())) {
    const auto bad = std::ranges::find_if(scores, [](float score) { return score != score; });
    refuse("score " + std::to_string(bad - scores.begin()) + " is NaN");
  }
  return std::bit_cast<float>(largest);
}

/// So many at a time: buckets and items are found in vectors, then counted or placed one by one.
constexpr std::size_t kAtATime = 64;
constexpr std::uint32_t kSteps = PartedScores::kBucketsOfSign;

constexpr std::size_t kPieces = 32;
constexpr std::size_t kLeastPiece = std::size_t{1} << 19;  // some ms; tables cost some us

struct Found {
  std::array<std::uint32_t, kAtATime> buckets;
  std::array<std::uint32_t, kAtATime> items;
};

/// scale   of scores to steps. Below zero the steps count downwards: ~step is -1 - step.
TRIREME_INLINE_LOOP void find_loop(const float* scores, const std::uint8_t* labels, std::size_t n,
                                   float scale, Found& found) {
  for (std::size_t i = 0; i < n; ++i) {
    const float score = scores[i];
    const float steps = __builtin_fabsf(score) * scale, last = kSteps - 1;
    const auto step = static_cast<std::int32_t>(steps < last ? steps : last);
    const std::int32_t flip = score < 0 ? -1 : 0;
    found.buckets[i] = kSteps + static_cast<std::uint32_t>(step ^ flip);
    found.items[i] =
        (std::bit_cast<std::uint32_t>(score) ^ static_cast<std::uint32_t>(flip)) << 1 | labels[i];
  }
}

/// Neighbours count in tables of their own: they would wait for each other in one.
using Tables = std::array<std::array<std::uint32_t, PartedScores::kBuckets>, 4>;

TRIREME_INLINE_LOOP void count_loop(Scores scores, Labels labels, float scale, Tables& tables) {
  Found found;
  for (std::size_t begin = 0; begin < scores.size(); begin += kAtATime) {
    const std::size_t n = std::min(kAtATime, scores.size() - begin);
    find_loop(&scores[begin], &labels[begin], n, scale, found);
    for (std::size_t i = 0; i < n; ++i) ++tables[i % tables.size()][found.buckets[i]];
  }
}

TRIREME_AVX2 void count_avx2(Scores scores, Labels labels, float scale, Tables& tables) {
  count_loop(scores, labels, scale, tables);
}

/// places   where each bucket's next item goes. The line after it is asked for now: stores wait for
///          lines in turn.
TRIREME_INLINE_LOOP void place_loop(Scores scores, Labels labels, float scale,
                                    std::uint32_t* places, std::uint32_t* items) {
  constexpr std::size_t kLine = 16;
  Found found;
  for (std::size_t begin = 0; begin < scores.size(); begin += kAtATime) {
    const std::size_t n = std::min(kAtATime, scores.size() - begin);
    find_loop(&scores[begin], &labels[begin], n, scale, found);
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t* const item = items + places[found.buckets[i]]++;
      __builtin_prefetch(item + kLine, 1);
      *item = found.items[i];
    }
  }
}

TRIREME_AVX2 void place_avx2(Scores scores, Labels labels, float scale, std::uint32_t* places,
                             std::uint32_t* items) {
  place_loop(scores, labels, scale, places, items);
}

/// In large pages, if there are any: more places are written in turn than a processor has small
/// pages at hand. One line more than the items, for the place asked for ahead.
std::uint32_t* make_items(std::size_t n) {
  constexpr std::size_t kPage = std::size_t{2} << 20, kLine = 64;
  const std::size_t bytes = (n * sizeof(std::uint32_t) + kLine + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (bytes > kPage) madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::uint32_t*>(memory);
}

}  // namespace

void PartedScores::Free::operator()(std::uint32_t* memory) const { std::free(memory); }

PartedScores::PartedScores(Scores scores, Labels labels, const kernels::Spread& spread) {
  const float largest = check(scores, labels);
  const float scale = (kSteps - 1) / std::clamp(largest, 1e-30F, std::numeric_limits<float>::max());
  const bool fast = kernels::has_avx2();
  // Pieces of neighbours: a bucket's items are in the order of scores however many there are.
  const std::size_t piece_size = std::max(kLeastPiece, (scores.size() + kPieces - 1) / kPieces);
  const std::size_t num_pieces = (scores.size() + piece_size - 1) / piece_size;
  const auto each_piece = [&](const auto& body) {
    spread(static_cast<std::int64_t>(num_pieces), [&](std::int64_t piece) {
      const std::size_t begin = static_cast<std::size_t>(piece) * piece_size;
      const std::size_t count = std::min(piece_size, scores.size() - begin);
      body(piece, scores.subspan(begin, count), labels.subspan(begin, count));
    });
  };
  std::vector<std::array<std::uint32_t, kBuckets>> places(num_pieces);
  each_piece([&](std::int64_t piece, Scores some, Labels their) {
    Tables tables{};
    (fast ? count_avx2 : count_loop)(some, their, scale, tables);
    for (std::uint32_t b = 0; b < kBuckets; ++b) {
      places[piece][b] = tables[0][b] + tables[1][b] + tables[2][b] + tables[3][b];
    }
  });
  begins_[0] = 0;
  for (std::uint32_t b = 0; b < kBuckets; ++b) {
    std::uint32_t end = begins_[b];
    for (auto& counts : places) end += std::exchange(counts[b], end);
    begins_[b + 1] = end;
  }
  items_.reset(make_items(scores.size()));
  each_piece([&](std::int64_t piece, Scores some, Labels their) {
    (fast ? place_avx2 : place_loop)(some, their, scale, places[piece].data(), items_.get());
  });
}

}  // namespace trireme::ranking
