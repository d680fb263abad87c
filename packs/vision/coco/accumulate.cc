// The verdicts of a category, sorted by score, become bits: for each slot one row of bits for hits
// and one for misses, 64 detections to a word. Precision changes for the better at hits only, so a
// row is walked from hit to hit, and the misses between are counted a word at a time.

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "packs/vision/coco/slots.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision::internal {
namespace {

constexpr int kWord = 64;

/// Row i, bit j becomes row j, bit i: halves are exchanged across the diagonal, then their halves.
TRIREME_INLINE_LOOP void transpose(Slots* rows) {
  std::uint64_t low = 0xFFFFFFFF;
  for (int half = 32; half > 0; half /= 2, low ^= low << half) {
    for (int block = 0; block < kWord; block += 2 * half) {
      for (int i = block; i < block + half; ++i) {
        const std::uint64_t swapped = ((rows[i] >> half) ^ rows[i + half]) & low;
        rows[i] ^= swapped << half;
        rows[i + half] ^= swapped;
      }
    }
  }
}

struct Entry {
  std::uint64_t key;
  std::int64_t index;
};

/// Stable, by ascending key: one pass for each 11 bits in which keys differ.
void sort_by_key(std::vector<Entry>& entries) {
  constexpr int kBits = 11, kPasses = 6, kBuckets = 1 << kBits;
  std::vector<std::array<std::uint32_t, kBuckets>> counts(kPasses);
  const auto digit = [](std::uint64_t key, int pass) {
    return key >> (pass * kBits) & (kBuckets - 1);
  };
  for (const Entry& entry : entries) {
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][digit(entry.key, pass)];
  }
  std::vector<Entry> sorted(entries.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& next = counts[pass];
    if (entries.empty() || next[digit(entries[0].key, pass)] == entries.size()) continue;
    std::uint32_t begin = 0;
    for (std::uint32_t& count : next) begin += std::exchange(count, begin);
    for (const Entry& entry : entries) sorted[next[digit(entry.key, pass)]++] = entry;
    entries.swap(sorted);
  }
}

/// A category's detections by descending score, as bits.
struct Rows {
  std::int64_t num_words = 0;
  std::vector<std::uint64_t> hits;    ///< [slot][num_words]
  std::vector<std::uint64_t> misses;  ///< [slot][num_words]
  std::vector<std::uint64_t> within;  ///< [limit][num_words]
};

TRIREME_INLINE_LOOP void fill_word(const Verdicts& verdicts, std::span<const Entry> entries,
                                   std::int64_t word, Rows& rows) {
  Slots hits[kWord] = {}, misses[kWord] = {};
  std::uint64_t within[CocoCurves::kLimits] = {};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::int64_t index = entries[i].index;
    hits[i] = verdicts.hits[index];
    misses[i] = verdicts.misses[index];
    for (int m = verdicts.first_limit[index]; m < CocoCurves::kLimits; ++m) {
      within[m] |= std::uint64_t{1} << i;
    }
  }
  transpose(hits);
  transpose(misses);
  for (int slot = 0; slot < kNumSlots; ++slot) {
    rows.hits[slot * rows.num_words + word] = hits[slot];
    rows.misses[slot * rows.num_words + word] = misses[slot];
  }
  for (int m = 0; m < CocoCurves::kLimits; ++m) rows.within[m * rows.num_words + word] = within[m];
}

TRIREME_INLINE_LOOP void fill_rows(const Verdicts& verdicts, std::span<const Entry> entries,
                                   Rows& rows) {
  for (std::int64_t word = 0; word < rows.num_words; ++word) {
    const std::size_t begin = word * kWord;
    fill_word(verdicts,
              entries.subspan(begin, std::min<std::size_t>(kWord, entries.size() - begin)), word,
              rows);
  }
}

/// Falling precision at each hit. Returns the number of hits.
///
/// precision   [hits at most], filled.
TRIREME_INLINE_LOOP std::int64_t precision_at_hits(const std::uint64_t* hits,
                                                   const std::uint64_t* misses,
                                                   const std::uint64_t* within,
                                                   std::int64_t num_words, double* precision) {
  constexpr double kEpsilon = 0x1p-52;  // numpy.spacing(1)
  std::int64_t num_hits = 0, num_misses = 0;
  for (std::int64_t word = 0; word < num_words; ++word) {
    const std::uint64_t missed = misses[word] & within[word];
    for (std::uint64_t left = hits[word] & within[word]; left != 0; left &= left - 1) {
      const std::uint64_t before = missed & ((left & -left) - 1);
      precision[num_hits++] = static_cast<double>(num_misses + std::popcount(before));
    }
    num_misses += std::popcount(missed);
  }
  for (std::int64_t i = 0; i < num_hits; ++i) {
    const auto tp = static_cast<double>(i + 1);
    precision[i] = tp / (precision[i] + tp + kEpsilon);
  }
  double largest = 0;
  for (std::int64_t i = num_hits - 1; i >= 0; --i) {
    largest = precision[i] > largest ? precision[i] : largest;
    precision[i] = largest;
  }
  return num_hits;
}

void fill_rows_portable(const Verdicts& verdicts, std::span<const Entry> entries, Rows& rows) {
  fill_rows(verdicts, entries, rows);
}
TRIREME_AVX2 void fill_rows_avx2(const Verdicts& verdicts, std::span<const Entry> entries,
                                 Rows& rows) {
  fill_rows(verdicts, entries, rows);
}
std::int64_t precision_portable(const std::uint64_t* hits, const std::uint64_t* misses,
                                const std::uint64_t* within, std::int64_t num_words,
                                double* precision) {
  return precision_at_hits(hits, misses, within, num_words, precision);
}
TRIREME_AVX2 std::int64_t precision_avx2(const std::uint64_t* hits, const std::uint64_t* misses,
                                         const std::uint64_t* within, std::int64_t num_words,
                                         double* precision) {
  return precision_at_hits(hits, misses, within, num_words, precision);
}

Rows make_rows(const Verdicts& verdicts, std::int64_t category) {
  std::vector<Entry> entries;
  const std::int64_t end = verdicts.category_begin[category + 1];
  for (std::int64_t i = verdicts.category_begin[category]; i < end; ++i) {
    if (verdicts.first_limit[i] < CocoCurves::kLimits)
      entries.push_back({verdicts.found[i].key, i});
  }
  sort_by_key(entries);
  Rows rows{.num_words = (std::ssize(entries) + kWord - 1) / kWord};
  rows.hits.resize(kNumSlots * rows.num_words);
  rows.misses.resize(kNumSlots * rows.num_words);
  rows.within.resize(CocoCurves::kLimits * rows.num_words);
  (kernels::has_avx2() ? fill_rows_avx2 : fill_rows_portable)(verdicts, entries, rows);
  return rows;
}

/// How many hits each recall asks for, of `num_counted` annotations: the least k from 1 on with
/// k / num_counted >= r.
std::array<std::int64_t, CocoCurves::kRecalls> hits_for_recalls(std::int64_t num_counted) {
  std::array<std::int64_t, CocoCurves::kRecalls> hits{};
  const auto n = static_cast<double>(num_counted);
  std::int64_t k = 1;
  for (int r = 0; r < CocoCurves::kRecalls; ++r) {
    const auto estimate = static_cast<std::int64_t>(kRecallThresholds[r] * n) - 1;
    k = std::max(k, estimate);
    while (static_cast<double>(k) / n < kRecallThresholds[r]) ++k;
    hits[r] = k;
  }
  return hits;
}

}  // namespace

void accumulate(const CocoGroundTruth& truth, const Verdicts& verdicts, std::int64_t category,
                CocoCurves& curves) {
  const std::int64_t begin = truth.category_begin[category];
  const std::int64_t end = truth.category_begin[category + 1];
  if (begin == end) return;
  const Rows rows = make_rows(verdicts, category);
  std::vector<double> precision(end - begin);
  const auto compute = kernels::has_avx2() ? precision_avx2 : precision_portable;
  for (int a = 0; a < CocoCurves::kAreas; ++a) {
    std::int64_t num_counted = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      num_counted +=
          static_cast<std::int64_t>(slots_of_truth(truth, i) >> (a * CocoCurves::kIous) & 1);
    }
    if (num_counted == 0) continue;
    const auto needed = hits_for_recalls(num_counted);
    for (int mt = 0; mt < CocoCurves::kLimits * CocoCurves::kIous; ++mt) {
      const int m = mt / CocoCurves::kIous, t = mt % CocoCurves::kIous;
      const std::int64_t slot = a * CocoCurves::kIous + t;
      const std::int64_t num_hits = compute(
          rows.hits.data() + slot * rows.num_words, rows.misses.data() + slot * rows.num_words,
          rows.within.data() + m * rows.num_words, rows.num_words, precision.data());
      const std::int64_t row =
          (category * CocoCurves::kAreas + a) * CocoCurves::kLimits * CocoCurves::kIous + mt;
      curves.recall[row] = static_cast<double>(num_hits) / static_cast<double>(num_counted);
      double* at = curves.precision.data() + row * CocoCurves::kRecalls;
      for (int r = 0; r < CocoCurves::kRecalls; ++r) {
        at[r] = needed[r] <= num_hits ? precision[needed[r] - 1] : 0;
      }
    }
  }
}

}  // namespace trireme::vision::internal
