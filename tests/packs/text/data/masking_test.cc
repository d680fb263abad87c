#include "packs/text/data/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

std::vector<std::int32_t> numbers(std::int32_t first, std::int32_t count) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), first);
  return result;
}

MaskedText masked(std::int32_t length, const MaskingOptions& options, std::uint64_t stream) {
  Draws draws(stream);
  return mask_tokens(numbers(1000, length), numbers(1, length - 2), options, draws);
}

TEST(Masking, ThePredictedTokensAreThoseThatStoodThere) {
  const MaskingOptions options{.max_predictions = 100};
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    const MaskedText text = masked(100, options, stream);
    EXPECT_EQ(text, masked(100, options, stream));
    ASSERT_EQ(text.positions.size(), 15U);
    EXPECT_TRUE(std::ranges::is_sorted(text.positions));
    EXPECT_EQ(std::set(text.positions.begin(), text.positions.end()).size(), 15U);
    auto restored = text.tokens;
    for (std::size_t i = 0; i < text.positions.size(); ++i) {
      EXPECT_GE(text.positions[i], 1);
      EXPECT_LE(text.positions[i], 98) << "only candidates";
      restored[static_cast<std::size_t>(text.positions[i])] = text.hidden[i];
    }
    EXPECT_EQ(restored, numbers(1000, 100));
  }
}

TEST(Masking, OfTenPositionsEightAreMaskedOneIsReplacedOneIsKept) {
  std::int64_t num_masked = 0, num_kept = 0, num_replaced = 0;
  for (std::uint64_t stream = 0; stream < 2000; ++stream) {
    const MaskedText text = masked(102, {.max_predictions = 100}, stream);
    for (std::size_t i = 0; i < text.positions.size(); ++i) {
      const Token token = text.tokens[static_cast<std::size_t>(text.positions[i])];
      ++(token == 103 ? num_masked : token == text.hidden[i] ? num_kept : num_replaced);
    }
  }
  const auto total = static_cast<double>(num_masked + num_kept + num_replaced);
  EXPECT_EQ(total, 2000 * 15);
  // Four standard deviations of 30,000 draws.
  EXPECT_NEAR(static_cast<double>(num_masked) / total, 0.8, 0.0093);
  EXPECT_NEAR(static_cast<double>(num_kept) / total, 0.1, 0.007);
  EXPECT_NEAR(static_cast<double>(num_replaced) / total, 0.1, 0.007);
}

TEST(Masking, EveryCandidateIsAsLikely) {
  std::vector<int> counts(20, 0);
  for (std::uint64_t stream = 0; stream < 4000; ++stream) {
    for (const std::int32_t position : masked(20, {}, stream).positions) ++counts[position];
  }
  EXPECT_EQ(counts.front() + counts.back(), 0);
  // 12,000 draws over 18 positions: 667 each; four standard deviations.
  for (int position = 1; position < 19; ++position) EXPECT_NEAR(counts[position], 667, 96);
}

TEST(Masking, TheNumberOfPredictionsHasLimits) {
  EXPECT_EQ(masked(128, {}, 1).positions.size(), 19U);
  EXPECT_EQ(masked(400, {}, 1).positions.size(), 20U) << "at most";
  EXPECT_EQ(masked(4, {}, 1).positions.size(), 1U) << "at least one";
  Draws draws(1);
  EXPECT_TRUE(mask_tokens({1, 2}, {}, {}, draws).positions.empty()) << "no candidates";
}

TEST(Masking, OptionsOutOfRangeAreNamed) {
  const auto complaint = [](const MaskingOptions& options) {
    return error_of([&] { check(options); }).message();
  };
  EXPECT_THAT(complaint({.probability = 0}), testing::HasSubstr("between 0 and 1"));
  EXPECT_THAT(complaint({.max_predictions = 0}), testing::HasSubstr("at least one"));
  EXPECT_THAT(complaint({.random_probability = 0.3}), testing::HasSubstr("together at most 1"));
  EXPECT_THAT(complaint({.mask = 30522}), testing::HasSubstr("vocabulary of 30522"));
}

}  // namespace
}  // namespace trireme::text
