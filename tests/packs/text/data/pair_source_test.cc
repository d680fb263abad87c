#include "packs/text/data/pair_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "packs/text/data/shard_writer.h"
#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::HasSubstr;

constexpr PairTokens kSpecial = {.padding = 0, .unknown = 1, .first = 2, .separator = 3, .mask = 4};
constexpr Token kFirstWord = 10;

class Pairs : public TextFolder {
 protected:
  /// Passages of sentences of so many tokens. Words count on from kFirstWord over all of them: a word
  /// tells where it stood.
  TokenShards shards(const std::vector<std::vector<int>>& passages) const {
    ShardWriter writer(folder, "training", 100);
    Token word = kFirstWord;
    for (const std::vector<int>& passage : passages) {
      for (const int length : passage) {
        for (int i = 0; i < length; ++i) writer.append({{word++}}, 0);
        writer.append({{kSpecial.separator}}, 0);
      }
      writer.append({{kSpecial.separator}}, 1);
    }
    return {folder, writer.finish(), 1 << 20};
  }

  static PairOptions options(std::int64_t length = 64) {
    return {.length = length,
            .masking = {.mask = kSpecial.mask, .vocabulary = 1 << 20},
            .special = kSpecial};
  }

  /// `passages` passages, sentences of 8 to 12 tokens.
  static std::vector<std::vector<int>> text(int passages, int sentences) {
    std::vector<std::vector<int>> result(static_cast<std::size_t>(passages));
    for (int p = 0; p < passages; ++p) {
      for (int s = 0; s < sentences; ++s) result[p].push_back(8 + (p + 3 * s) % 5);
    }
    return result;
  }

  /// The tokens of a sample before some were hidden.
  static std::vector<Token> restored(const MaskedText& text) {
    std::vector<Token> tokens = text.tokens;
    for (std::size_t i = 0; i < text.positions.size(); ++i) {
      tokens[static_cast<std::size_t>(text.positions[i])] = text.hidden[i];
    }
    return tokens;
  }
};

/// Whether the words count on.
bool is_run(std::span<const Token> words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != words[0] + static_cast<Token>(i)) return false;
  }
  return !words.empty() && words[0] >= kFirstWord;
}

TEST_F(Pairs, AreTwoRunsOfWordsBetweenSpecialTokens) {
  PairOptions given = options();
  given.short_probability = 0;
  const PairSource source(shards(text(30, 14)), given);
  EXPECT_GT(source.num_samples(), 60);
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    for (const std::int64_t visit : {0, 1}) {
      const SegmentPair pair = source.pair_of({i, visit});
      const std::vector<Token> tokens = restored(pair.text);
      ASSERT_LE(tokens.size(), 64U);
      ASSERT_EQ(tokens.front(), kSpecial.first);
      ASSERT_EQ(tokens.back(), kSpecial.separator);
      ASSERT_EQ(tokens[pair.second - 1], kSpecial.separator);
      const std::span<const Token> all(tokens);
      const auto first = all.subspan(1, pair.second - 2);
      const auto second = all.subspan(pair.second, all.size() - pair.second - 1);
      EXPECT_TRUE(is_run(first)) << i;
      EXPECT_TRUE(is_run(second)) << i;
      if (!pair.is_random && all.size() < 64) {
        EXPECT_EQ(second.front(), first.back() + 1) << "nothing was cut off";
      }
    }
  }
}

TEST_F(Pairs, TheSecondSegmentIsFromTheSamePassageOrFromAnother) {
  constexpr int kPassages = 30;
  const auto passages = text(kPassages, 14);
  std::vector<int> passage_of_word;
  for (int p = 0; p < kPassages; ++p) {
    for (const int length : passages[p]) passage_of_word.insert(passage_of_word.end(), length, p);
  }
  const PairSource source(shards(passages), options());
  const auto passage = [&](Token word) { return passage_of_word.at(word - kFirstWord); };
  int num_random = 0, total = 0;
  std::set<int> picked;
  for (std::int64_t visit = 0; visit < 40; ++visit) {
    for (std::int64_t i = 0; i < source.num_samples(); ++i, ++total) {
      const SegmentPair pair = source.pair_of({i, visit});
      const std::vector<Token> tokens = restored(pair.text);
      const int other = passage(tokens[pair.second]);
      EXPECT_EQ(passage(tokens[1]) != other, pair.is_random);
      num_random += pair.is_random ? 1 : 0;
      if (pair.is_random) picked.insert(other);
    }
  }
  EXPECT_GT(total, 2400);
  EXPECT_NEAR(num_random / static_cast<double>(total), 0.5, 2.0 / std::sqrt(total));
  EXPECT_EQ(picked.size(), static_cast<std::size_t>(kPassages));
}

TEST_F(Pairs, FifteenOfAHundredPositionsArePredicted) {
  const PairSource source(shards(text(30, 14)), options(128));
  double predicted = 0, tokens = 0;
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    const MaskedText text = source.pair_of({i, 0}).text;
    predicted += static_cast<double>(text.positions.size());
    tokens += static_cast<double>(text.tokens.size());
    for (const Token hidden : text.hidden) EXPECT_GE(hidden, kFirstWord) << "no special token";
  }
  EXPECT_NEAR(predicted / tokens, 0.15, 0.005);
}

TEST_F(Pairs, SomeAreShortAndThoseAtTheEndsOfPassages) {
  PairOptions all_long = options();
  all_long.short_probability = 0;
  PairOptions all_short = options();
  all_short.short_probability = 1;
  const TokenShards tokens = shards(text(30, 40));
  const auto mean_length = [&](const PairOptions& given) {
    const PairSource source(tokens, given);
    double sum = 0;
    for (std::int64_t i = 0; i < source.num_samples(); ++i) {
      sum += static_cast<double>(source.pair_of({i, 0}).text.tokens.size());
    }
    return sum / static_cast<double>(source.num_samples());
  };
  EXPECT_GT(mean_length(all_long), 52);
  EXPECT_LT(mean_length(all_short), 40);
  EXPECT_LT(mean_length(options()), mean_length(all_long));
}

TEST_F(Pairs, AreAFunctionOfSeedIndexAndVisit) {
  const TokenShards tokens = shards(text(30, 14));
  const PairSource source(tokens, options()), same(tokens, options());
  PairOptions seeded = options();
  seeded.seed = 1;
  const PairSource other(tokens, seeded);
  std::set<std::vector<Token>> seen;
  for (std::int64_t i = source.num_samples() - 1; i >= 0; --i) {
    for (const std::int64_t visit : {1, 0}) {
      const SegmentPair pair = source.pair_of({i, visit});
      EXPECT_EQ(pair.text, same.pair_of({i, visit}).text);
      EXPECT_NE(pair.text, other.pair_of({i, visit}).text);
      seen.insert(pair.text.tokens);
    }
  }
  EXPECT_EQ(std::ssize(seen), 2 * source.num_samples());
}

TEST_F(Pairs, LongAndSingleSentencesAreCut) {
  const PairSource source(shards({{200, 1}, {7}, {1}, {30}}), options(23));
  // 200 tokens in runs of 20, the last with the sentence of 1; passages of 7 and 30 (20 and 10).
  EXPECT_EQ(source.num_samples(), 10 + 0 + 1 + 2);
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    for (std::int64_t visit = 0; visit < 20; ++visit) {
      const SegmentPair pair = source.pair_of({i, visit});
      EXPECT_LE(pair.text.tokens.size(), 23U);
      EXPECT_GE(pair.second, 3U) << "the first segment has a token";
      EXPECT_GT(pair.text.tokens.size(), pair.second + 1) << "and the second";
    }
  }
}

TEST_F(Pairs, FieldsArePaddedWithZeros) {
  PairOptions given = options(32);
  given.masking.max_predictions = 7;
  const PairSource source(shards(text(4, 3)), given);
  const auto& fields = source.fields();
  ASSERT_EQ(fields.size(), 7U);
  std::vector<std::vector<std::int32_t>> values;
  std::vector<std::span<std::byte>> destinations;
  for (const data::Field& field : fields) {
    values.emplace_back(static_cast<std::size_t>(field.num_bytes() / 4), -1);
  }
  for (auto& one : values) destinations.push_back(std::as_writable_bytes(std::span(one)));
  source.read({1, 2}, destinations);
  const SegmentPair pair = source.pair_of({1, 2});
  const auto count = static_cast<std::int32_t>(pair.text.tokens.size());
  std::vector<std::int32_t> tokens = pair.text.tokens, types(32, 0);
  tokens.resize(32, 0);
  for (std::int32_t i = static_cast<std::int32_t>(pair.second); i < count; ++i) types[i] = 1;
  EXPECT_EQ(values[0], tokens);
  EXPECT_EQ(values[1], types);
  EXPECT_EQ(values[2], std::vector{count});
  std::vector<std::int32_t> positions = pair.text.positions, hidden = pair.text.hidden;
  EXPECT_EQ(values[5], std::vector{static_cast<std::int32_t>(positions.size())});
  positions.resize(7, 0);
  hidden.resize(7, 0);
  EXPECT_EQ(values[3], positions);
  EXPECT_EQ(values[4], hidden);
  EXPECT_EQ(values[6], std::vector{pair.is_random ? 1 : 0});
}

TEST_F(Pairs, IdentityTellsTokensAndOptionsApart) {
  const TokenShards tokens = shards(text(30, 14));
  std::vector<PairOptions> all(9, options());
  all[1].length = 65;
  all[2].masking.probability = 0.2;
  all[3].masking.max_predictions = 19;
  all[4].short_probability = 0.2;
  all[5].random_probability = 0.4;
  all[6].special.first = 1;
  all[7].masking.vocabulary = 1000;
  all[8].seed = 1;
  std::set<std::string> identities;
  for (const PairOptions& one : all) identities.insert(PairSource(tokens, one).identity());
  EXPECT_EQ(identities.size(), 9U);
  EXPECT_EQ(PairSource(tokens, all[0]).identity(), PairSource(tokens, options()).identity());
  identities.insert(PairSource(shards(text(30, 13)), options()).identity());
  EXPECT_EQ(identities.size(), 10U);
}

TEST_F(Pairs, RefuseWhatDoesNotFit) {
  const auto complaint = [&](const std::vector<std::vector<int>>& passages,
                             const PairOptions& given) {
    const Error error = error_of([&] { PairSource(shards(passages), given); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(complaint(text(3, 3), options(4)), HasSubstr("5 to 2^20 tokens, got 4"));
  EXPECT_THAT(complaint({{5, 5}}, options()), HasSubstr("at least two passages"));
  EXPECT_THAT(complaint({{20, 8}}, options(23)), HasSubstr("at least two passages"))
      << "the run that fills a sample ends no passage";
  EXPECT_THAT(complaint({}, options()), HasSubstr("give more text"));
  PairOptions wrong = options();
  wrong.short_probability = 2;
  EXPECT_THAT(complaint(text(3, 3), wrong), HasSubstr("from 0 to 1, got 2"));
  const PairSource source(shards(text(3, 3)), options());
  EXPECT_EQ(error_of([&] { source.read({0, 0}, {}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { (void)source.pair_of({source.num_samples(), 0}); }).kind(),
            ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace trireme::text
