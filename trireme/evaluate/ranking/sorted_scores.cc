#include "trireme/evaluate/ranking/sorted_scores.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/kernels/simd.h"

// One pass over memory parts the scores into buckets, evenly by value, so that even ones fill them
// evenly; then each bucket is in the cache, and a radix sort orders it by the few bits in which its
// items differ. Uneven scores make larger buckets: slower, not wrong.

namespace trireme::evaluate {
namespace {

constexpr std::uint32_t kBuckets = 1024;  ///< For each sign.
constexpr int kMostDigitBits = 11;
constexpr std::size_t kSmall = 64;  ///< Buckets up to that are sorted by comparing.

TRIREME_INLINE_LOOP std::uint32_t magnitude_loop(std::span<const float> scores) {
  std::uint32_t largest = 0;
  for (const float score : scores) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(score) & 0x7FFFFFFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

TRIREME_AVX2 std::uint32_t magnitude_avx2(std::span<const float> scores) {
  return magnitude_loop(scores);
}

TRIREME_INLINE_LOOP std::uint8_t bits_loop(std::span<const std::uint8_t> labels) {
  std::uint8_t bits = 0;
  for (const std::uint8_t label : labels) bits |= label;
  return bits;
}

TRIREME_AVX2 std::uint8_t bits_avx2(std::span<const std::uint8_t> labels) {
  return bits_loop(labels);
}

/// The bits of the largest magnitude.
std::uint32_t check(std::span<const float> scores, std::span<const std::uint8_t> labels) {
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
  return largest;
}

/// Where a score goes: in the order of scores.
class Buckets {
 public:
  explicit Buckets(float largest)
      : scale_((kBuckets - 1) / std::clamp(largest, 1e-30F, std::numeric_limits<float>::max())) {}

  std::uint32_t operator()(float score) const {
    const auto step = static_cast<std::int32_t>(
        std::min(std::abs(score) * scale_, static_cast<float>(kBuckets - 1)));
    // Below zero the steps count downwards: ~step is -1 - step.
    const std::int32_t flip = score < 0 ? -1 : 0;
    return kBuckets + static_cast<std::uint32_t>(step ^ flip);
  }

 private:
  float scale_;
};

std::uint32_t item_of(float score, std::uint8_t label) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  const std::uint32_t flip = score < 0 ? ~0U : 0;
  return (bits ^ flip) << 1 | label;
}

/// Ascending, in place. other: as many, overwritten.
void sort(std::span<std::uint32_t> items, std::span<float> other) {
  if (items.size() <= kSmall) {
    std::ranges::sort(items);
    return;
  }
  std::uint32_t low = items[0], high = items[0];
  for (const std::uint32_t item : items) {
    low = item < low ? item : low;
    high = item > high ? item : high;
  }
  const int width = std::bit_width(high - low);
  const int rounds = (width + 2 * kMostDigitBits - 1) / (2 * kMostDigitBits);
  const int digit_bits = (width + 2 * rounds - 1) / std::max(2 * rounds, 1);
  const std::uint32_t digit_mask = (1U << digit_bits) - 1;
  std::array<std::uint32_t, 1 << kMostDigitBits> all_places;
  const auto places = std::span(all_places).first(digit_mask + 1);
  const auto pass = [&](int shift, const auto& from, auto& to) {
    using To = std::remove_reference_t<decltype(to[0])>;
    const auto digit = [&](auto item) {
      return (std::bit_cast<std::uint32_t>(item) - low) >> shift & digit_mask;
    };
    std::ranges::fill(places, 0);
    for (const auto item : from) ++places[digit(item)];
    std::exclusive_scan(places.begin(), places.end(), places.begin(), 0U);
    for (const auto item : from) to[places[digit(item)]++] = std::bit_cast<To>(item);
  };
  // There and back.
  for (int round = 0; round < rounds; ++round) {
    pass(2 * round * digit_bits, items, other);
    pass((2 * round + 1) * digit_bits, other, items);
  }
}

/// In large pages, if there are any: what is written goes to a thousand places in turn, which are
/// more than a processor has small pages at hand.
std::uint32_t* make_items(std::size_t n) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const std::size_t bytes = (n * sizeof(std::uint32_t) + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, std::max(bytes, kPage));
  if (memory == nullptr) throw std::bad_alloc();
  if (bytes > kPage) madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::uint32_t*>(memory);
}

}  // namespace

void SortedScores::Free::operator()(std::uint32_t* memory) const { std::free(memory); }

SortedScores::SortedScores(std::span<float> scores, std::span<const std::uint8_t> labels) {
  const Buckets bucket(std::bit_cast<float>(check(scores, labels)));
  const std::size_t n = scores.size();
  // The last place ends all.
  std::array<std::uint32_t, 2 * kBuckets + 1> begins{};
  for (const float score : scores) ++begins[bucket(score)];
  std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), 0U);
  memory_.reset(make_items(n));
  auto places = begins;
  for (std::size_t i = 0; i < n; ++i) {
    memory_[places[bucket(scores[i])]++] = item_of(scores[i], labels[i]);
  }
  const std::span items(memory_.get(), n);
  for (std::size_t b = 0; b < 2 * kBuckets; ++b) {
    const std::size_t begin = begins[b], size = begins[b + 1] - begin;
    sort(items.subspan(begin, size), scores.subspan(begin, size));
  }
  halves_ = {items.first(begins[kBuckets]), items.subspan(begins[kBuckets])};
}

}  // namespace trireme::evaluate
