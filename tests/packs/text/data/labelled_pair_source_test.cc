#include "packs/text/data/labelled_pair_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Letters are tokens from 5 on.
WordPieces letters() {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary += std::string(1, letter) + "\n";
  return WordPieces::from_vocabulary(vocabulary, "letters");
}

class LabelledSource : public TextFolder {
 protected:
  std::filesystem::path table(const std::string& name, const std::string& rows) const {
    return write(name, "premise\thypothesis\tlabel\n" + rows);
  }

  /// The text of a sample, special tokens too.
  static std::string text_of(const LabelledPairSource& source, std::int64_t index) {
    return letters().decode(source.pair(index).tokens);
  }
};

TEST_F(LabelledSource, SamplesAreThePairsOfAllFilesInOrder) {
  const LabelledPairSource source(
      {table("1.tsv", "a b\tc\tyes\nd\te f\tno\n"), table("2.tsv", "g\th\tmaybe\n")}, letters(),
      {});
  ASSERT_EQ(source.num_samples(), 3);
  EXPECT_EQ(text_of(source, 0), "[CLS] a b [SEP] c [SEP]");
  EXPECT_EQ(text_of(source, 1), "[CLS] d [SEP] e f [SEP]");
  EXPECT_EQ(text_of(source, 2), "[CLS] g [SEP] h [SEP]");
  EXPECT_THAT(source.labels(), ElementsAre("maybe", "no", "yes")) << "sorted";
  const auto numbers = [&](std::int64_t index) {
    const auto pair = source.pair(index);
    return std::vector<int>{static_cast<int>(pair.second), pair.label, pair.file};
  };
  EXPECT_THAT(numbers(0), ElementsAre(4, 2, 0));
  EXPECT_THAT(numbers(1), ElementsAre(3, 1, 0));
  EXPECT_THAT(numbers(2), ElementsAre(3, 0, 1));
}

TEST_F(LabelledSource, TheLongerTextLosesItsLastTokens) {
  const auto shortened = [&](const std::string& first, const std::string& second) {
    const auto path = table("pairs.tsv", first + "\t" + second + "\t1\nz\tz\t2\n");
    return text_of({{path}, letters(), {.length = 8}}, 0);
  };
  EXPECT_EQ(shortened("a b", "c d e"), "[CLS] a b [SEP] c d e [SEP]") << "as long as may be";
  EXPECT_EQ(shortened("a b c d e f", "g"), "[CLS] a b c d [SEP] g [SEP]");
  EXPECT_EQ(shortened("a", "b c d e f g"), "[CLS] a [SEP] b c d e [SEP]");
  EXPECT_EQ(shortened("a b c d", "e f g h"), "[CLS] a b c [SEP] e f [SEP]");
  EXPECT_EQ(shortened("", "e f"), "[CLS] [SEP] e f [SEP]");
}

TEST_F(LabelledSource, FieldsArePadded) {
  const LabelledPairSource source({table("1.tsv", "a\tb\tx\n"), table("2.tsv", "c\td e\ty\n")},
                                  letters(), {.length = 9});
  std::vector<std::vector<std::int32_t>> values;
  for (const data::Field& field : source.fields()) {
    values.emplace_back(static_cast<std::size_t>(field.num_bytes() / 4), -1);
  }
  std::vector<std::span<std::byte>> destinations;
  for (auto& one : values) destinations.push_back(std::as_writable_bytes(std::span(one)));
  source.read({1}, destinations);
  EXPECT_THAT(values, ElementsAre(ElementsAre(2, 7, 3, 8, 9, 3, 0, 0, 0),
                                  ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0), ElementsAre(6),
                                  ElementsAre(1), ElementsAre(1)));
  EXPECT_THROW(source.read({2}, destinations), Error);
  EXPECT_THROW(source.read({0}, std::span(destinations).first(4)), Error);
  destinations[0] = destinations[0].first(8);
  EXPECT_THROW(source.read({0}, destinations), Error);
}

TEST_F(LabelledSource, SaysHowLongSamplesAreWhereTheyArePaddedToSeveralLengths) {
  const auto path = table("1.tsv", "a\tb\tx\nc\td e\ty\n");
  const LabelledPairSource source({path}, letters(), {.length = 9, .padded = {5, 7}});
  EXPECT_THAT(source.padded_lengths(),
              ElementsAre(data::Lengths{{"tokens", 5}}, data::Lengths{{"tokens", 7}},
                          data::Lengths{{"tokens", 9}}));
  EXPECT_EQ(source.lengths_of({0}), (data::Lengths{{"tokens", 5}}));
  std::vector<std::int32_t> tokens(6), types(6), one(1);
  const auto bytes = [](auto& numbers) { return std::as_writable_bytes(std::span(numbers)); };
  const std::vector<std::span<std::byte>> places = {bytes(tokens), bytes(types), bytes(one),
                                                    bytes(one), bytes(one)};
  source.read({1}, places);
  EXPECT_THAT(tokens, ElementsAre(2, 7, 3, 8, 9, 3)) << "without padding";
  EXPECT_THAT(types, ElementsAre(0, 0, 0, 1, 1, 1));
  for (const auto& padded : {std::vector<std::int64_t>{7, 5}, {9}, {0}}) {
    EXPECT_THROW(LabelledPairSource({path}, letters(), {.length = 9, .padded = padded}), Error);
  }
  EXPECT_NE(source.identity(), LabelledPairSource({path}, letters(), {.length = 9}).identity());
}

TEST_F(LabelledSource, LabelsThatAreGivenHaveTheirOrderAndNoOtherIsTaken) {
  const auto path = table("pairs.tsv", "a\tb\tyes\nc\td\tno\n");
  const LabelledPairSource source({path}, letters(), {.labels = {"yes", "maybe", "no"}});
  EXPECT_EQ(source.pair(0).label, 0);
  EXPECT_EQ(source.pair(1).label, 2);
  const auto complaint = [&](const std::vector<std::string>& labels) {
    const Error error =
        error_of([&] { LabelledPairSource({path}, letters(), {.labels = labels}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(
      complaint({"yes", "maybe"}),
      HasSubstr(path.string() + "' line 3: expected one of the labels 'yes', 'maybe', got"));
  EXPECT_THAT(complaint({"yes"}), HasSubstr("two labels or more"));
  EXPECT_THAT(complaint({"yes", "no", "yes"}), HasSubstr("each once"));
}

TEST_F(LabelledSource, WhatMakesNoSamplesIsRefused) {
  EXPECT_THROW(LabelledPairSource({}, letters(), {}), Error);
  const auto path = table("pairs.tsv", "a\tb\tyes\nc\td\tno\n");
  EXPECT_THROW(LabelledPairSource({path}, letters(), {.length = 4}), Error);
  EXPECT_THROW(LabelledPairSource({table("one.tsv", "a\tb\tyes\n")}, letters(), {}), Error);
}

TEST_F(LabelledSource, IdentityTellsPairsAndOptionsApart) {
  const auto path = table("pairs.tsv", "a\tb\tyes\nc\td\tno\n");
  const auto identity = [&](const std::filesystem::path& file, const LabelledPairOptions& options) {
    return LabelledPairSource({file}, letters(), options).identity();
  };
  std::set<std::string> identities = {identity(path, {}), identity(path, {.length = 64}),
                                      identity(path, {.labels = {"yes", "no"}}),
                                      identity(table("other.tsv", "a\tb\tno\nc\td\tyes\n"), {}),
                                      identity(table("longer.tsv", "a\tb\tyes\nc\td e\tno\n"), {})};
  EXPECT_EQ(identities.size(), 5U);
  EXPECT_TRUE(identities.contains(identity(table("same.tsv", "a\tb\tyes\nc\td\tno\n"), {})));
}

}  // namespace
}  // namespace trireme::text
