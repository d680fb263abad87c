#include "packs/vision/kernels/selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/random.h"
#include "trireme/error.h"
#include "trireme/kernels/philox.h"

namespace trireme::vision {
namespace {

/// What an index shares 64 bits with is 32 bits of what it is ordered by.
constexpr std::uint64_t kMostIndices = std::uint64_t{1} << 32;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, what);
}

// ---- Hard negatives

void check_losses(std::span<const float> losses) {
  std::uint32_t num_bad = 0;  // counted, since a loop that leaves early is not vectorised
  for (const float loss : losses) num_bad += loss != loss ? 1 : 0;
  if (num_bad == 0) return;
  const auto bad = std::ranges::find_if(losses, [](float loss) { return loss != loss; });
  refuse("the loss of anchor " + std::to_string(bad - losses.begin()) + " is NaN");
}

/// Larger for larger losses, then for smaller indices; above 0 for all that are not NaN.
std::uint64_t rank_of(float loss, std::uint32_t index) {
  const auto bits = std::bit_cast<std::uint32_t>(loss + 0.0F);  // -0 is 0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return (std::uint64_t{ordered} << 32) | static_cast<std::uint32_t>(~index);
}

/// The anchors of the highest ranks seen so far, at most twice as many as are wanted: then the
/// lower half is dropped, and the bar for others rises. Few pass it soon.
class Hardest {
 public:
  explicit Hardest(std::int64_t num_wanted) : num_wanted_(num_wanted) {
    ranks_.reserve(2 * num_wanted);
  }

  float bar() const { return bar_; }

  void add(float loss, std::uint32_t index) {
    ranks_.push_back(rank_of(loss, index));
    if (std::ssize(ranks_) < 2 * num_wanted_) return;
    drop();
    const auto lowest = static_cast<std::uint32_t>(ranks_.back() >> 32);
    bar_ = std::bit_cast<float>((lowest >> 31) != 0 ? lowest ^ 0x80000000U : ~lowest);
  }

  void mark(std::span<std::uint8_t> is_chosen) {
    if (std::ssize(ranks_) > num_wanted_) drop();
    for (const std::uint64_t rank : ranks_) is_chosen[static_cast<std::uint32_t>(~rank)] = 1;
  }

 private:
  /// The lowest that stays is the last.
  void drop() {
    std::ranges::nth_element(ranks_, ranks_.begin() + num_wanted_ - 1, std::ranges::greater());
    ranks_.resize(num_wanted_);
  }

  const std::int64_t num_wanted_;
  float bar_ = -std::numeric_limits<float>::infinity();
  std::vector<std::uint64_t> ranks_;
};

/// Marks the `count` hardest that are not marked yet.
void mark_hardest(std::span<const float> losses, std::int64_t count,
                  std::span<std::uint8_t> is_chosen) {
  constexpr std::int64_t kPiece = 32;
  Hardest hardest(count);
  const std::int64_t n = std::ssize(losses);
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t end = std::min(begin + kPiece, n);
    const float bar = hardest.bar();
    int num_above = 0;
    for (std::int64_t i = begin; i < end; ++i) num_above += losses[i] >= bar ? 1 : 0;
    for (std::int64_t i = begin; num_above > 0 && i < end; ++i) {
      // What is as hard as the bar comes after it and is dropped; it passes for -infinity's sake.
      const bool passes = losses[i] >= hardest.bar();
      if (passes && is_chosen[i] == 0) hardest.add(losses[i], static_cast<std::uint32_t>(i));
    }
  }
  hardest.mark(is_chosen);
}

}  // namespace

void internal::check_ratio(double ratio) {
  if (ratio >= 0) return;
  refuse("the ratio of hard negatives to matches must be 0 or more, got " + std::to_string(ratio));
}

std::int64_t mine_hard_negatives(std::span<const float> losses,
                                 std::span<const std::uint8_t> is_matched, double ratio,
                                 std::span<std::uint8_t> is_chosen) {
  if (is_matched.size() != losses.size() || is_chosen.size() != losses.size()) {
    refuse("expected as many matches and choices as losses (" + std::to_string(losses.size()) +
           "), got " + std::to_string(is_matched.size()) + " and " +
           std::to_string(is_chosen.size()));
  }
  if (losses.size() >= kMostIndices) refuse("hard negatives: expected less than 2^32 anchors");
  internal::check_ratio(ratio);
  check_losses(losses);
  std::int64_t num_matched = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    is_chosen[i] = is_matched[i] != 0 ? 1 : 0;
    num_matched += is_chosen[i];
  }
  // In this order, so that infinity times no matches, NaN, is all.
  const auto num_negatives = static_cast<double>(std::ssize(losses) - num_matched);
  const auto count =
      static_cast<std::int64_t>(std::min(num_negatives, ratio * static_cast<double>(num_matched)));
  if (count > 0) mark_hardest(losses, count, is_chosen);
  return num_matched + count;
}

std::int64_t fixed_nonzero(std::span<const std::uint8_t> values, std::span<std::int64_t> places) {
  constexpr std::size_t kPiece = 8;
  const std::int64_t num_places = std::ssize(places);
  std::int64_t count = 0;
  std::size_t i = 0;
  const auto add = [&](std::size_t index) {
    if (values[index] != 0 && count < num_places)
      places[count++] = static_cast<std::int64_t>(index);
  };
  for (; i + kPiece <= values.size() && count < num_places; i += kPiece) {
    std::uint64_t piece = 0;
    std::memcpy(&piece, &values[i], kPiece);
    if (piece == 0) continue;
    if (count + std::int64_t{kPiece} > num_places) {
      for (std::size_t k = 0; k < kPiece; ++k) add(i + k);
      continue;
    }
    for (std::size_t k = 0; k < kPiece; ++k) {  // without branches: written, and kept where found
      places[count] = static_cast<std::int64_t>(i + k);
      count += values[i + k] != 0 ? 1 : 0;
    }
  }
  for (; i < values.size(); ++i) add(i);
  for (std::int64_t place = count; place < num_places; ++place) {
    places[place] = count == 0 ? 0 : places[place - count];
  }
  return count;
}

}  // namespace trireme::vision
