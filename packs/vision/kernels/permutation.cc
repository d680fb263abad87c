#include "packs/vision/kernels/permutation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "trireme/base/random.h"
#include "trireme/error.h"
#include "trireme/kernels/philox.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision {
namespace {

using Key = std::array<std::uint32_t, 2>;

/// The first 31 bits of an index's random number, then the index in 32: never negative, so that
/// vectors of AVX2 can compare them.
using Pair = std::int64_t;

constexpr int kNumberBits = 31;
constexpr int kIndexBits = 32;

/// The number that index i is ordered by: its lower half decides where upper ones are equal, so it
/// is drawn for few.
std::uint64_t number_of(const Key& key, std::uint32_t i) {
  const std::uint64_t upper = philox({i / 4, 0, 0, 0}, key)[i % 4];
  const std::uint64_t lower = philox({i / 4, 1, 0, 0}, key)[i % 4];
  return (upper << 32) | lower;
}

/// Pairs by the first bits of their numbers, each bucket in order of the indices. A bucket has room
/// for more than its share, so that nothing is counted before it is put there.
class Buckets {
 public:
  Buckets(std::int64_t num_pairs, int num_bits)
      : num_bits_(num_bits), sizes_(std::size_t{1} << num_bits) {
    const double share = static_cast<double>(num_pairs) / static_cast<double>(sizes_.size());
    reserve(static_cast<std::uint32_t>(share + 8 * std::sqrt(share)) + 16);
  }

  std::size_t size() const { return sizes_.size(); }
  int num_bits() const { return num_bits_; }

  std::span<const Pair> operator[](std::size_t bucket) const {
    return {pairs_.get() + bucket * room_, sizes_[bucket]};
  }

  /// Whether there was room.
  bool add(std::uint32_t word, std::int64_t index) {
    const std::size_t bucket = std::uint64_t{word} >> (32 - num_bits_);
    const std::uint32_t place = sizes_[bucket]++;
    if (place == room_) return false;
    pairs_[bucket * room_ + place] = (Pair{word >> 1} << kIndexBits) | index;
    return true;
  }

  /// Empty, with twice the room: numbers that are far from even, which nobody may ever see.
  void start_again() {
    std::ranges::fill(sizes_, 0);
    reserve(2 * room_);
  }

 private:
  void reserve(std::uint32_t room) {
    room_ = room;
    pairs_ = std::make_unique_for_overwrite<Pair[]>(sizes_.size() * room);
  }

  int num_bits_;
  std::uint32_t room_ = 0;
  std::unique_ptr<Pair[]> pairs_;
  std::vector<std::uint32_t> sizes_;
};

/// Whether all `n` pairs had room.
bool draw(const Key& key, std::int64_t n, Buckets& buckets) {
  constexpr std::int64_t kRow = 128;  // counters, of four words each
  std::array<std::uint32_t, 4 * kRow> words;
  for (std::int64_t begin = 0; begin < n; begin += 4 * kRow) {
    kernels::philox_row({0, 0, 0}, key, kRow, words.data(),
                        {.first = static_cast<std::uint32_t>(begin / 4)});
    const std::int64_t count = std::min(n - begin, 4 * kRow);
    const auto add = [&](std::int64_t i, int word) {
      return buckets.add(words[word * kRow + i], begin + 4 * i + word);
    };
    for (std::int64_t i = 0; i < count / 4; ++i) {
      if (!add(i, 0) || !add(i, 1) || !add(i, 2) || !add(i, 3)) return false;
    }
    for (int word = 0; word < count % 4; ++word) {
      if (!add(count / 4, word)) return false;
    }
  }
  return true;
}

/// A bucket's pairs, those at even places apart from those at odd ones: then what compares
/// neighbours compares element i with element i.
struct Halves {
  std::vector<Pair> even, odd;

  void resize(std::size_t n) {
    even.resize((n + 1) / 2);
    odd.resize(n / 2);
  }
};

/// Each count becomes the sum of those before it; a multiple of four of them.
void sum_before(std::span<std::uint32_t> counts) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); i += 4) {
    std::uint32_t* const four = &counts[i];
    const std::uint32_t two = four[0] + four[1], three = two + four[2], all = three + four[3];
    four[3] = sum + three;
    four[2] = sum + two;
    four[1] = sum + four[0];
    four[0] = sum;
    sum += all;
  }
}

/// Puts pairs near their places, by the bits from `shift` on that count `ends`, its workspace.
void put_near(std::span<const Pair> pairs, int shift, std::span<std::uint32_t> ends,
              Halves& halves) {
  const std::uint64_t mask = ends.size() - 1;
  const auto slot = [&](Pair pair) { return (static_cast<std::uint64_t>(pair) >> shift) & mask; };
  std::ranges::fill(ends, 0);
  for (const Pair pair : pairs) ++ends[slot(pair)];
  sum_before(ends);
  Pair* const side[] = {halves.even.data(), halves.odd.data()};
  for (const Pair pair : pairs) {
    const std::uint32_t place = ends[slot(pair)]++;
    side[place % 2][place / 2] = pair;
  }
}

TRIREME_INLINE_LOOP void order_each(Pair* __restrict low, Pair* __restrict high, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const Pair a = low[i], b = high[i];
    low[i] = a < b ? a : b;
    high[i] = a < b ? b : a;
  }
}

/// What neighbours are after they were ordered.
struct Neighbours {
  std::int64_t num_wrong = 0;  // out of order
  std::int64_t num_equal = 0;  // of the same number

  TRIREME_INLINE_LOOP void count(const Pair* low, const Pair* high, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      num_wrong += low[i] > high[i] ? 1 : 0;
      num_equal += (low[i] >> kIndexBits) == (high[i] >> kIndexBits) ? 1 : 0;
    }
  }
};

/// Orders neighbours, without a branch, since nobody could predict it: all are in order then where
/// no more than six belong to one slot.
TRIREME_INLINE_LOOP Neighbours order_neighbours_loop(Pair* even, Pair* odd, std::size_t n) {
  Neighbours found;
  if (n < 2) return found;
  for (int pass = 0; pass < 3; ++pass) {
    order_each(even, odd, n / 2);
    order_each(odd, even + 1, (n - 1) / 2);
  }
  found.count(even, odd, n / 2);
  found.count(odd, even + 1, (n - 1) / 2);
  return found;
}

Neighbours order_neighbours_portable(Pair* even, Pair* odd, std::size_t n) {
  return order_neighbours_loop(even, odd, n);
}
TRIREME_AVX2 Neighbours order_neighbours_avx2(Pair* even, Pair* odd, std::size_t n) {
  return order_neighbours_loop(even, odd, n);
}
TRIREME_AVX512 Neighbours order_neighbours_avx512(Pair* even, Pair* odd, std::size_t n) {
  return order_neighbours_loop(even, odd, n);
}

/// Orders those whose first bits are equal by the whole number.
void order_equals(const Key& key, std::span<Pair> sorted) {
  const auto first_bits = [&](std::size_t i) { return sorted[i] >> kIndexBits; };
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    for (end = begin + 1; end < sorted.size() && first_bits(end) == first_bits(begin);) ++end;
    if (end - begin == 1) continue;
    std::ranges::stable_sort(sorted.subspan(begin, end - begin), {}, [&](Pair pair) {
      return number_of(key, static_cast<std::uint32_t>(pair));
    });
  }
}

void join(const Halves& halves, std::span<Pair> sorted) {
  for (std::size_t i = 0; i < halves.odd.size(); ++i) {
    sorted[2 * i] = halves.even[i];
    sorted[2 * i + 1] = halves.odd[i];
  }
  if (sorted.size() % 2 == 1) sorted.back() = halves.even.back();
}

/// Sorts each bucket, in the first cache: by the next bits to slots of about one, then exactly.
void write_order(const Key& key, const Buckets& buckets, std::span<std::int64_t> order) {
  const auto order_neighbours =
      kernels::of_isa(&order_neighbours_portable, &order_neighbours_avx2, &order_neighbours_avx512);
  const auto num_slots = std::max<std::size_t>(4, std::bit_ceil(order.size() / buckets.size()));
  const int shift = kNumberBits + kIndexBits - buckets.num_bits() - std::countr_zero(num_slots);
  std::vector<std::uint32_t> ends(num_slots);
  Halves halves;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const std::span<const Pair> pairs = buckets[bucket];
    const auto part = order.first(pairs.size());
    order = order.subspan(pairs.size());
    halves.resize(pairs.size());
    put_near(pairs, shift, ends, halves);
    const Neighbours found = order_neighbours(halves.even.data(), halves.odd.data(), pairs.size());
    join(halves, part);
    if (found.num_wrong > 0) std::ranges::sort(part);
    if (found.num_wrong + found.num_equal > 0) order_equals(key, part);
    for (Pair& pair : part) pair &= (Pair{1} << kIndexBits) - 1;
  }
}

}  // namespace

void random_permutation(std::uint64_t seed, std::span<std::int64_t> order) {
  if (order.size() >= std::size_t{1} << kIndexBits) {
    throw Error(ErrorKind::kInvalidArgument, "random permutation: expected less than 2^32 indices");
  }
  const Key key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  const int num_bits = std::clamp(static_cast<int>(std::bit_width(order.size())) - 10, 0, 11);
  Buckets buckets(std::ssize(order), num_bits);
  while (!draw(key, std::ssize(order), buckets)) buckets.start_again();
  write_order(key, buckets, order);
}

}  // namespace trireme::vision
