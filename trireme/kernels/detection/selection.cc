#include "trireme/kernels/detection/selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/random.h"

namespace trireme::kernels {

void internal::check_ratio(double ratio) {
  if (ratio >= 0) return;
  throw Error(
      ErrorKind::kInvalidArgument,
      "the ratio of hard negatives to matches must be 0 or more, got " + std::to_string(ratio));
}

std::int64_t mine_hard_negatives(std::span<const float> losses,
                                 std::span<const std::uint8_t> is_matched, double ratio,
                                 std::span<std::uint8_t> is_chosen) {
  if (is_matched.size() != losses.size() || is_chosen.size() != losses.size()) {
    throw Error(ErrorKind::kInvalidArgument, "expected as many matches and choices as losses (" +
                                                 std::to_string(losses.size()) + "), got " +
                                                 std::to_string(is_matched.size()) + " and " +
                                                 std::to_string(is_chosen.size()));
  }
  internal::check_ratio(ratio);
  std::vector<std::int64_t> negatives;
  std::int64_t num_matched = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (std::isnan(losses[i])) {
      throw Error(ErrorKind::kInvalidArgument,
                  "the loss of anchor " + std::to_string(i) + " is NaN");
    }
    is_chosen[i] = is_matched[i] != 0 ? 1 : 0;
    num_matched += is_chosen[i];
    if (is_chosen[i] == 0) negatives.push_back(static_cast<std::int64_t>(i));
  }
  // In this order, so that infinity times no matches, NaN, is all.
  const auto count = static_cast<std::int64_t>(
      std::min(static_cast<double>(negatives.size()), ratio * static_cast<double>(num_matched)));
  std::ranges::nth_element(negatives, negatives.begin() + count, [&](auto a, auto b) {
    return losses[a] != losses[b] ? losses[a] > losses[b] : a < b;
  });
  for (std::int64_t i = 0; i < count; ++i) is_chosen[negatives[i]] = 1;
  return num_matched + count;
}

std::int64_t fixed_nonzero(std::span<const std::uint8_t> values, std::span<std::int64_t> places) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size() && count < std::ssize(places); ++i) {
    if (values[i] != 0) places[count++] = static_cast<std::int64_t>(i);
  }
  for (std::int64_t i = count; i < std::ssize(places); ++i) {
    places[i] = count == 0 ? 0 : places[i - count];
  }
  return count;
}

void random_permutation(std::uint64_t seed, std::span<std::int64_t> order) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  std::vector<std::uint64_t> numbers(order.size());
  for (std::size_t i = 0; i < order.size(); i += 2) {
    const auto words =
        philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}, key);
    numbers[i] = (std::uint64_t{words[0]} << 32) | words[1];
    if (i + 1 < order.size()) numbers[i + 1] = (std::uint64_t{words[2]} << 32) | words[3];
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
  });
}

}  // namespace trireme::kernels
