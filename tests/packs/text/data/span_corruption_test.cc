#include "packs/text/data/span_corruption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "trireme/error.h"

namespace trireme::data {
namespace {

using testing::HasSubstr;

constexpr SpecialTokens kSpecial{.end = 1, .first_sentinel = 32099, .num_sentinels = 100};

std::vector<Token> counted(std::int64_t size) {
  std::vector<Token> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 2);
  return tokens;
}

/// The published setting: 568 tokens, 85 of them hidden in 28 spans.
TEST(SpanLengths, AreThoseOfThePaper) {
  const SpanLengths lengths = longest_span_lengths(512);
  EXPECT_EQ(lengths, (SpanLengths{568, 85, 28, 512, 114}));
  EXPECT_GT(span_lengths(569).inputs, 512);
}

/// tf.round and Python's round give 10 of the 10.5 noise tokens of 70.
TEST(SpanLengths, HalvesAreRoundedToEven) {
  EXPECT_EQ(longest_span_lengths(64), (SpanLengths{70, 10, 3, 64, 14}));
  EXPECT_EQ(span_lengths(10, {.noise_density = 0.25, .mean_span = 1}).noise_tokens, 2);
  EXPECT_EQ(span_lengths(14, {.noise_density = 0.25, .mean_span = 1}).noise_tokens, 4);
}

TEST(SpanLengths, TheLongestIsFoundForAnyInputs) {
  for (const SpanOptions options : {SpanOptions{}, SpanOptions{0.5, 1}, SpanOptions{0.9, 20}}) {
    for (std::int64_t inputs = 3; inputs < 600; ++inputs) {
      const SpanLengths lengths = longest_span_lengths(inputs, options);
      EXPECT_LE(lengths.inputs, inputs);
      EXPECT_GT(span_lengths(lengths.tokens + 1, options).inputs, inputs);
    }
  }
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(longest_span_lengths(huge).tokens, std::int64_t{1} << 52);
}

TEST(SpanLengths, AddUpForAnySize) {
  for (std::int64_t tokens = 2; tokens < 700; ++tokens) {
    const SpanLengths lengths = span_lengths(tokens);
    EXPECT_EQ(lengths.inputs + lengths.targets, tokens + 2 * lengths.spans + 2);
    EXPECT_GE(lengths.noise_tokens, lengths.spans);
    EXPECT_GE(tokens - lengths.noise_tokens, lengths.spans);
  }
  EXPECT_EQ(span_lengths(2), (SpanLengths{2, 1, 1, 3, 3}));
}

TEST(SpanLengths, NonsenseIsRefused) {
  EXPECT_THROW(span_lengths(1), Error);
  EXPECT_THROW(span_lengths((std::int64_t{1} << 52) + 1), Error);
  EXPECT_THROW(longest_span_lengths(2), Error);
  for (const double density : {0.0, 1.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(span_lengths(10, {.noise_density = density}), Error) << density;
  }
  EXPECT_THROW(span_lengths(10, {.mean_span = 0.5}), Error);
}

TEST(CorruptSpans, IsUndoneWithoutLoss) {
  for (const std::int64_t size : {2, 3, 4, 5, 10, 31, 100, 568}) {
    const std::vector<Token> tokens = counted(size);
    const SpanLengths lengths = span_lengths(size);
    for (std::uint64_t stream = 0; stream < 50; ++stream) {
      const CorruptedText text = corrupt_spans(tokens, kSpecial, {}, stream);
      EXPECT_EQ(static_cast<std::int64_t>(text.inputs.size()), lengths.inputs);
      EXPECT_EQ(static_cast<std::int64_t>(text.targets.size()), lengths.targets);
      EXPECT_EQ(restore_spans(text, kSpecial), tokens);
    }
  }
}

TEST(CorruptSpans, StartsWithTextAndSentinelsDescend) {
  const CorruptedText text = corrupt_spans(counted(568), kSpecial, {}, 7);
  EXPECT_EQ(text.inputs.front(), 2);
  EXPECT_EQ(text.inputs.back(), kSpecial.end);
  EXPECT_EQ(text.targets.front(), kSpecial.first_sentinel);
  EXPECT_EQ(text.targets.back(), kSpecial.end);
  Token expected = kSpecial.first_sentinel;
  for (const Token token : text.inputs) {
    if (token <= 1000) continue;
    EXPECT_EQ(token, expected);
    --expected;
  }
  EXPECT_EQ(expected, kSpecial.first_sentinel - 28);
}

TEST(CorruptSpans, IsAFunctionOfItsStream) {
  const std::vector<Token> tokens = counted(100);
  EXPECT_EQ(corrupt_spans(tokens, kSpecial, {}, 1), corrupt_spans(tokens, kSpecial, {}, 1));
  EXPECT_NE(corrupt_spans(tokens, kSpecial, {}, 1), corrupt_spans(tokens, kSpecial, {}, 2));
}

/// 8 tokens, 4 hidden in 2 spans: 3 ways to part the hidden ones times 3 for the others.
TEST(CorruptSpans, EveryCompositionIsAsLikely) {
  std::map<std::vector<Token>, int> counts;
  constexpr int kDraws = 9000;
  for (int stream = 0; stream < kDraws; ++stream) {
    ++counts[corrupt_spans(counted(8), kSpecial, {.noise_density = 0.5, .mean_span = 2}, stream)
                 .inputs];
  }
  EXPECT_EQ(counts.size(), 9U);
  double chi_squared = 0;
  for (const auto& [inputs, count] : counts) {
    const double excess = count - kDraws / 9.0;
    chi_squared += excess * excess / (kDraws / 9.0);
  }
  EXPECT_LT(chi_squared, 26.1);  // 8 degrees of freedom, 1 in 1000; the streams are fixed
}

TEST(CorruptSpans, SentinelsMustBeEnough) {
  SpecialTokens few = kSpecial;
  few.num_sentinels = 27;
  try {
    corrupt_spans(counted(568), few, {}, 0);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("28 hidden spans, and there are only 27 sentinels"));
  }
}

TEST(RestoreSpans, EndTokensWithinTheTextAreText) {
  for (const std::int64_t size : {2, 5, 31, 100}) {
    std::vector<Token> tokens = counted(size);
    for (std::int64_t t = 0; t < size; t += 2) tokens[t] = kSpecial.end;
    for (std::uint64_t stream = 0; stream < 50; ++stream) {
      EXPECT_EQ(restore_spans(corrupt_spans(tokens, kSpecial, {}, stream), kSpecial), tokens);
    }
  }
}

TEST(HiddenSpans, AreWhatFollowsEachSentinel) {
  const Token first = kSpecial.first_sentinel, end = kSpecial.end;
  using Spans = std::map<Token, std::vector<Token>>;
  const auto spans = [](const std::vector<Token>& targets) {
    return hidden_spans(targets, kSpecial);
  };
  EXPECT_EQ(spans({}), Spans{});
  EXPECT_EQ(spans({first, 5, end, 6, first - 1, 7, end}), (Spans{{0, {5, end, 6}}, {1, {7}}}));
  EXPECT_EQ(spans({first, 5, first - 1}), (Spans{{0, {5}}, {1, {}}})) << "a completion cut off";
  EXPECT_EQ(spans({4, first - 99, 5, first - 99, 6, first - 100}), (Spans{{99, {6, first - 100}}}));
}

TEST(RestoreSpans, RefusesWhatDoesNotFit) {
  const CorruptedText good = corrupt_spans(counted(30), kSpecial, {}, 3);
  CorruptedText other = good;
  other.targets.front() -= 1;
  EXPECT_THROW(restore_spans(other, kSpecial), Error);
  other = good;
  other.inputs.erase(std::find(other.inputs.begin(), other.inputs.end(), kSpecial.first_sentinel));
  EXPECT_THROW(restore_spans(other, kSpecial), Error);
  for (std::vector<Token> CorruptedText::* part :
       {&CorruptedText::inputs, &CorruptedText::targets}) {
    other = good;
    (other.*part).pop_back();
    EXPECT_THROW(restore_spans(other, kSpecial), Error) << "no end token";
    (other.*part).clear();
    EXPECT_THROW(restore_spans(other, kSpecial), Error);
  }
}

}  // namespace
}  // namespace trireme::data
