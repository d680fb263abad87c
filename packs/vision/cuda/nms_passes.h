#pragma once

// The passes of nms.h. Places are positions in order of falling scores; a word holds one bit for
// each of 64 places.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "packs/vision/cuda/nms.h"
#include "packs/vision/kernels/box_overlap.h"
#include "packs/vision/kernels/nms.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::vision::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

using Word = std::uint64_t;
constexpr int kWordBits = 64;

struct NmsSpace {
  NmsSpace(Cutter cutter, std::int64_t n)
      : num_words(count_parts(n, kWordBits)),
        order(cutter.take<std::int64_t>(n)),
        overlaps(cutter.take<Word>(n * num_words)),
        is_out(cutter.take<Word>(num_words)),
        is_kept(cutter.take<Word>(num_words)),
        bytes(cutter.bytes()) {}

  std::int64_t num_words;
  std::int64_t* order;  ///< [n] the box at a place.
  Word* overlaps;       ///< [n, num_words] which later places a place would suppress.
  Word* is_out;         ///< [num_words]
  Word* is_kept;        ///< [num_words]
  std::int64_t bytes;
};

/// Puts box i to its place: the number of those before it.
struct SortByScore {
  NmsCandidates candidates;
  std::int64_t* order;

  TRIREME_HOST_DEVICE float score(std::int64_t i) const {
    const float score = candidates.scores[i];
    return score == score ? score : -std::numeric_limits<float>::infinity();
  }

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const float own = score(i);
    std::int64_t place = 0;
    for (std::int64_t j = 0; j < candidates.n; ++j) {
      const float other = score(j);
      place += other > own || (other == own && j < i) ? 1 : 0;
    }
    order[place] = i;
  }
};

/// Word i % num_words of what place i / num_words suppresses.
struct FindOverlaps {
  NmsCandidates candidates;
  double threshold;
  NmsSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [place, word] = divide(i, space.num_words);
    const std::int64_t first = word * kWordBits;
    const std::int64_t left = candidates.n - first;
    Word bits = 0;
    for (std::int64_t bit = 0; bit < kWordBits && bit < left; ++bit) {
      if (first + bit > place && suppresses(place, first + bit)) bits |= Word{1} << bit;
    }
    space.overlaps[i] = bits;
  }

  TRIREME_HOST_DEVICE bool suppresses(std::int64_t place, std::int64_t later) const {
    const std::int64_t a = space.order[place], b = space.order[later];
    const std::int64_t* classes = candidates.classes;
    if (classes != nullptr && classes[a] != classes[b]) return false;
    const float x =
        vision::internal::box_overlap(candidates.boxes + a * 4, candidates.boxes + b * 4);
    return static_cast<double>(x) > threshold;
  }
};

/// The greedy choice, a word after the other: in its first step index `word` decides on the word's
/// places, in its second the later words learn what those suppress.
struct Choose {
  std::int64_t n;
  NmsSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t step,
                                      std::int64_t i) const {
    if (step == 0) {
      space.is_out[i] = 0;
      return;
    }
    const std::int64_t word = (step - 1) / 2;
    const bool decides = step % 2 == 1;
    if (decides && i == word) decide(word);
    if (!decides && i > word) learn(word, i);
  }

  TRIREME_HOST_DEVICE std::int64_t num_bits(std::int64_t word) const {
    const std::int64_t left = n - word * kWordBits;
    return left < kWordBits ? left : kWordBits;
  }

  TRIREME_HOST_DEVICE void decide(std::int64_t word) const {
    Word out = space.is_out[word], kept = 0;
    for (std::int64_t bit = 0; bit < num_bits(word); ++bit) {
      const Word suppressed = space.overlaps[(word * kWordBits + bit) * space.num_words + word];
      const bool is_in = (out >> bit & 1) == 0;
      kept |= is_in ? Word{1} << bit : 0;
      out |= is_in ? suppressed : 0;
    }
    space.is_kept[word] = kept;
  }

  TRIREME_HOST_DEVICE void learn(std::int64_t word, std::int64_t later) const {
    const Word kept = space.is_kept[word];
    Word out = space.is_out[later];
    for (std::int64_t bit = 0; bit < num_bits(word); ++bit) {
      if ((kept >> bit & 1) == 0) continue;
      out |= space.overlaps[(word * kWordBits + bit) * space.num_words + later];
    }
    space.is_out[later] = out;
  }
};

struct ClearKept {
  NmsKept kept;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    if (i == kept.capacity) {
      *kept.count = 0;
    } else {
      kept.boxes[i] = 0;
    }
  }
};

/// Writes the box at place i if it is kept; the last place the count.
struct WriteKept {
  NmsSpace space;
  NmsKept kept;
  std::int64_t n;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t word = i / kWordBits, bit = i % kWordBits;
    std::int64_t before = 0;
    for (std::int64_t w = 0; w < word; ++w) before += count_bits(space.is_kept[w]);
    before += count_bits(space.is_kept[word] & ((Word{1} << bit) - 1));
    const bool is_kept = (space.is_kept[word] >> bit & 1) != 0;
    if (is_kept && before < kept.capacity) kept.boxes[before] = space.order[i];
    if (i + 1 < n) return;
    const std::int64_t all = before + (is_kept ? 1 : 0);
    *kept.count = all < kept.capacity ? all : kept.capacity;
  }

  TRIREME_HOST_DEVICE static int count_bits(Word word) {
#if defined(__CUDA_ARCH__)
    return __popcll(word);
#else
    return std::popcount(word);
#endif
  }
};

template <typename Each>
void fixed_nms_passes(const NmsCandidates& candidates, double threshold, const NmsKept& kept,
                      std::span<std::byte> workspace, const Each& each) {
  vision::internal::check_nms_threshold(threshold);
  const std::int64_t n = candidates.n;
  const NmsSpace space(Cutter(workspace), n);
  check_workspace("fixed_nms", workspace, space.bytes);
  each(kept.capacity + 1, ClearKept{kept});
  if (n == 0) return;
  each(n, SortByScore{candidates, space.order});
  each(n * space.num_words, FindOverlaps{candidates, threshold, space});
  each.steps({1, 1 + 2 * space.num_words, space.num_words}, Choose{n, space});
  each(n, WriteKept{space, kept, n});
}

}  // namespace trireme::vision::cuda::internal
