#include "packs/speech/metrics/word_error_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/base/error_of.h"

namespace trireme::speech {
namespace {

WordErrors errors_of(std::int64_t words, std::int64_t substitutions, std::int64_t deletions,
                     std::int64_t insertions) {
  const bool is_wrong = substitutions + deletions + insertions > 0;
  return {words, substitutions, deletions, insertions, 1, is_wrong ? 1 : 0};
}

TEST(WordErrorRateTest, CountsEachKind) {
  EXPECT_EQ(count_word_errors("a b c", "a b c"), errors_of(3, 0, 0, 0));
  EXPECT_EQ(count_word_errors("a b c", "a x c"), errors_of(3, 1, 0, 0));
  EXPECT_EQ(count_word_errors("a b c", "a c"), errors_of(3, 0, 1, 0));
  EXPECT_EQ(count_word_errors("a c", "a b c"), errors_of(2, 0, 0, 1));
  EXPECT_EQ(count_word_errors("", ""), errors_of(0, 0, 0, 0));
  EXPECT_EQ(count_word_errors("", "a b"), errors_of(0, 0, 0, 2));
  EXPECT_EQ(count_word_errors("a b", " \n"), errors_of(2, 0, 2, 0));
}

TEST(WordErrorRateTest, ScliteCostsPreferACorrectWordToTwoSubstitutions) {
  EXPECT_EQ(count_word_errors("a b", "b c"), errors_of(2, 2, 0, 0));
  EXPECT_EQ(count_word_errors("a b", "b c", {.costs = AlignmentCosts::sclite()}),
            errors_of(2, 0, 1, 1));
}

TEST(WordErrorRateTest, SplitsAtAsciiWhiteSpaceOnly) {
  EXPECT_EQ(count_word_errors(" zwei\tW\xC3\xB6rter \r\n", "zwei W\xC3\xB6rter"),
            errors_of(2, 0, 0, 0));
  EXPECT_EQ(count_word_errors("a\xC2\xA0"
                              "b",
                              "a b"),
            errors_of(1, 1, 0, 1));
}

TEST(WordErrorRateTest, IgnoresTheCaseOfAsciiLettersWhereAsked) {
  EXPECT_EQ(count_word_errors("The Cat", "the cat").substitutions, 2);
  EXPECT_EQ(count_word_errors("The Cat", "the cat", {.ignores_case = true}).errors(), 0);
  EXPECT_EQ(count_word_errors("\xC3\x84", "\xC3\xA4", {.ignores_case = true}).errors(), 1);
}

TEST(WordErrorRateTest, AddsUp) {
  WordErrors all;
  EXPECT_EQ(all.word_error_rate(), 0);
  EXPECT_EQ(all.sentence_error_rate(), 0);
  all += count_word_errors("a b c", "a b c");
  all += count_word_errors("a b c d e", "x b d e f");
  EXPECT_EQ(all, (WordErrors{8, 1, 1, 1, 2, 1}));
  EXPECT_EQ(all.correct_words(), 6);
  EXPECT_EQ(all.word_error_rate(), 3.0 / 8);
  EXPECT_EQ(all.sentence_error_rate(), 0.5);
  EXPECT_EQ(count_word_errors("", "a").word_error_rate(), std::numeric_limits<double>::infinity());
}

/// The edit distance as it is defined.
std::int64_t distance(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return std::ssize(a) + std::ssize(b);
  const std::string a_rest = a.substr(1), b_rest = b.substr(1);
  return std::min({distance(a_rest, b_rest) + (a[0] != b[0]), distance(a_rest, b) + 1,
                   distance(a, b_rest) + 1});
}

TEST(WordErrorRateTest, EqualsTheEditDistance) {
  std::mt19937 random(1);
  const auto letters = [&] {
    std::string text(random() % 6, ' ');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
    return text;
  };
  const auto spaced = [](const std::string& text) {
    std::string words;
    for (const char letter : text) words += std::string(1, letter) + " ";
    return words;
  };
  for (int round = 0; round < 300; ++round) {
    const std::string a = letters(), b = letters();
    const WordErrors counted = count_word_errors(spaced(a), spaced(b));
    EXPECT_EQ(counted.errors(), distance(a, b)) << a << " " << b;
    EXPECT_EQ(counted.num_words, std::ssize(a));
    EXPECT_EQ(counted.insertions - counted.deletions, std::ssize(b) - std::ssize(a));
  }
}

/// The alignment as the header defines it, step by step from the end: = s i d for its kinds.
std::string steps_by_definition(const std::string& a, const std::string& b,
                                const AlignmentCosts& costs) {
  std::vector<std::vector<std::int64_t>> best(a.size() + 1,
                                              std::vector<std::int64_t>(b.size() + 1));
  const auto paired = [&](std::size_t i, std::size_t j) {
    return best[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : costs.substitution);
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::vector<std::int64_t> ways;
      if (i > 0 && j > 0) ways.push_back(paired(i, j));
      if (j > 0) ways.push_back(best[i][j - 1] + costs.insertion);
      if (i > 0) ways.push_back(best[i - 1][j] + costs.deletion);
      best[i][j] = ways.empty() ? 0 : std::ranges::min(ways);
    }
  }
  std::string steps;
  for (std::size_t i = a.size(), j = b.size(); i > 0 || j > 0;) {
    if (i > 0 && j > 0 && best[i][j] == paired(i, j)) {
      steps += a[--i] == b[--j] ? '=' : 's';
    } else if (j > 0 && best[i][j] == best[i][j - 1] + costs.insertion) {
      steps += 'i', --j;
    } else {
      steps += 'd', --i;
    }
  }
  std::ranges::reverse(steps);
  return steps;
}

std::string steps_of(const std::vector<WordEdit>& edits) {
  std::string steps;
  for (const WordEdit& edit : edits) steps += "=sid"[static_cast<int>(edit.kind)];
  return steps;
}

/// The words of one side, one letter each.
std::string letters_of(const std::vector<WordEdit>& edits, std::string_view WordEdit::* side) {
  std::string letters;
  for (const WordEdit& edit : edits) letters += edit.*side;
  return letters;
}

TEST(WordErrorRateTest, CountsAndAlignsAsDefined) {
  std::mt19937 random(2);
  for (const AlignmentCosts& costs : {AlignmentCosts{}, AlignmentCosts::sclite(),
                                      AlignmentCosts{1, 5, 2}, AlignmentCosts{7, 2, 3}}) {
    for (int round = 0; round < 300; ++round) {
      std::string texts[2], letters[2];
      for (int k = 0; k < 2; ++k) {
        for (auto left = random() % 20; left > 0; --left) {
          letters[k] += static_cast<char>('a' + random() % 4);
          texts[k] += std::string(1, letters[k].back()) + " ";
        }
      }
      const std::string steps = steps_by_definition(letters[0], letters[1], costs);
      const WordErrors counted = count_word_errors(texts[0], texts[1], {.costs = costs});
      EXPECT_EQ(counted.substitutions, std::ranges::count(steps, 's')) << steps;
      EXPECT_EQ(counted.deletions, std::ranges::count(steps, 'd')) << steps;
      EXPECT_EQ(counted.insertions, std::ranges::count(steps, 'i')) << steps;
      EXPECT_EQ(counted.wrong_utterances, letters[0] == letters[1] ? 0 : 1);
      const std::vector<WordEdit> edits = align_words(texts[0], texts[1], {.costs = costs});
      EXPECT_EQ(steps_of(edits), steps) << letters[0] << " " << letters[1];
      EXPECT_EQ(letters_of(edits, &WordEdit::reference), letters[0]);
      EXPECT_EQ(letters_of(edits, &WordEdit::hypothesis), letters[1]);
    }
  }
}

TEST(WordErrorRateTest, AlignsWords) {
  using enum WordEditKind;
  using Edits = std::vector<WordEdit>;
  EXPECT_EQ(align_words("", ""), Edits{});
  EXPECT_EQ(align_words(" a", ""), (Edits{{kDeletion, "a", ""}}));
  EXPECT_EQ(align_words("", "a b"), (Edits{{kInsertion, "", "a"}, {kInsertion, "", "b"}}));
  EXPECT_EQ(align_words("the cat sat", "a cat sat down"), (Edits{{kSubstitution, "the", "a"},
                                                                 {kMatch, "cat", "cat"},
                                                                 {kMatch, "sat", "sat"},
                                                                 {kInsertion, "", "down"}}));
  EXPECT_EQ(align_words("a b", "b c"),
            (Edits{{kSubstitution, "a", "b"}, {kSubstitution, "b", "c"}}));
  EXPECT_EQ(align_words("a b", "b c", {.costs = AlignmentCosts::sclite()}),
            (Edits{{kDeletion, "a", ""}, {kMatch, "b", "b"}, {kInsertion, "", "c"}}));
  EXPECT_EQ(align_words("The end", "the", {.ignores_case = true}),
            (Edits{{kMatch, "The", "the"}, {kDeletion, "end", ""}}));
}

TEST(WordErrorRateTest, EqualCostsAreDecidedFromTheEnd) {
  EXPECT_EQ(steps_of(align_words("a b", "b")), "d=");
  EXPECT_EQ(steps_of(align_words("a b", "c")), "ds");
  EXPECT_EQ(steps_of(align_words("a", "a a")), "i=");
  EXPECT_EQ(steps_of(align_words("a b a", "a")), "dd=");
  // An insertion last, rather than a deletion last with the insertion before it.
  EXPECT_EQ(steps_of(align_words("a", "b", {.costs = {9, 1, 1}})), "di");
}

TEST(WordErrorRateTest, RefusesWhatCannotBeCounted) {
  const auto message = [](const AlignmentCosts& costs) {
    return test::error_of([&] { count_word_errors("a b", "c", {.costs = costs}); }).message();
  };
  EXPECT_THAT(message({0, 1, 1}), testing::HasSubstr("1 or more, got 0"));
  EXPECT_THAT(message({1, -2, 1}), testing::HasSubstr("got -2"));
  const std::string many(1 << 16, 'a');
  std::string words;
  for (const char c : many) words += {c, ' '};
  const auto count = [&] { count_word_errors(words, words, {.costs = {1, 1 << 30, 1}}); };
  EXPECT_THAT(test::error_of(count).message(), testing::HasSubstr("131072 words"));
  const auto align = [&] { align_words(words, words + "b"); };
  EXPECT_THAT(test::error_of(align).message(), testing::HasSubstr("65536 with 65537 words"));
}

}  // namespace
}  // namespace trireme::speech
