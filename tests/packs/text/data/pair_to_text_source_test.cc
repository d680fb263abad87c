#include "packs/text/data/pair_to_text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer = [] {
    const std::vector<std::string> texts = {
        "premise: a cat sat on a mat hypothesis: the cat sat neutral entailment contradiction"};
    return Tokenizer::train(texts, {.num_pieces = 300});
  }();
  return kTokenizer;
}

class PairToText : public TextFolder {
 protected:
  std::filesystem::path table(const std::string& name, const std::string& rows) const {
    return write(name, "premise\thypothesis\tlabel\n" + rows);
  }

  static std::vector<std::int32_t> field(const PairToTextSource& source, std::int64_t index,
                                         std::size_t which) {
    std::vector<std::vector<std::int32_t>> values;
    std::vector<std::span<std::byte>> destinations;
    for (const data::Field& one : source.fields()) {
      values.emplace_back(one.shape.empty() ? 1 : one.shape[0]);
    }
    for (auto& value : values) destinations.push_back(std::as_writable_bytes(std::span(value)));
    source.read({.index = index}, destinations);
    return values[which];
  }

  static std::string text_of(const PairToTextSource& source, std::int64_t index) {
    return tokenizer().decode(source.pair(index).tokens);
  }
};

TEST_F(PairToText, InputsAreTheTextsBehindTheNamesOfTheirColumns) {
  const PairToTextSource source(
      {table("1.tsv", "a cat\tthe cat sat\tneutral\n"), table("2.tsv", "a\tb\tentailment\n")},
      tokenizer(), {.inputs = 100});
  ASSERT_EQ(source.num_samples(), 2);
  EXPECT_EQ(text_of(source, 0), "premise: a cat hypothesis: the cat sat");
  EXPECT_EQ(text_of(source, 1), "premise: a hypothesis: b");
  EXPECT_THAT(source.labels(), ElementsAre("entailment", "neutral"));
  const std::vector<std::int32_t> inputs = field(source, 1, 0), targets = field(source, 0, 1);
  const auto length = source.pair(1).tokens.size();
  EXPECT_EQ(inputs[length - 1], tokenizer().end());
  EXPECT_EQ(inputs[length], tokenizer().padding());
  EXPECT_EQ(tokenizer().decode(targets), "neutral");
  EXPECT_EQ(std::ranges::count(targets, tokenizer().end()), 1);
  EXPECT_THAT(field(source, 0, 2), ElementsAre(1));
  EXPECT_THAT(field(source, 1, 3), ElementsAre(1));
}

TEST_F(PairToText, LongTextsLoseTheirEnds) {
  const auto file =
      table("long.tsv", "a cat a cat a cat a cat a cat\tthe\tneutral\nx\ty\tentailment\n");
  const PairToTextSource whole({file}, tokenizer(), {.inputs = 200});
  const auto length = static_cast<std::int64_t>(whole.pair(0).tokens.size());
  const PairToTextSource shorter({file}, tokenizer(), {.inputs = length - 2});
  EXPECT_EQ(std::ssize(shorter.pair(0).tokens), length - 2);
  EXPECT_THAT(text_of(shorter, 0), testing::EndsWith(" hypothesis: the"));
  EXPECT_EQ(shorter.pair(0).tokens.back(), tokenizer().end());
}

TEST_F(PairToText, MisuseIsNamed) {
  const auto file = table("pairs.tsv", "a\tb\tneutral\nc\td\tentailment\n");
  const auto complaint = [&](PairToTextOptions options) {
    return error_of([&] { PairToTextSource({file}, tokenizer(), std::move(options)); }).message();
  };
  EXPECT_THAT(complaint({.inputs = 4}), HasSubstr("inputs take "));
  EXPECT_THAT(complaint({.labels = {"neutral", "other"}}), HasSubstr("line 3: expected one of"));
  const PairToTextSource source({file}, tokenizer(), {});
  EXPECT_THAT(error_of([&] { source.pair(2); }).message(), HasSubstr("no sample 2 among 2"));
}

TEST_F(PairToText, TheIdentityIsOfAllThatASampleIs) {
  const auto file = table("pairs.tsv", "a\tb\tneutral\nc\td\tentailment\n");
  const auto identity = [&](const std::filesystem::path& path, PairToTextOptions options) {
    return PairToTextSource({path}, tokenizer(), std::move(options)).identity();
  };
  const std::string usual = identity(file, {});
  EXPECT_EQ(usual, identity(file, {}));
  EXPECT_NE(usual, identity(file, {.inputs = 100}));
  EXPECT_NE(usual, identity(file, {.labels = {"neutral", "entailment"}}));
  EXPECT_NE(usual, identity(table("other.tsv", "a\tb\tentailment\nc\td\tneutral\n"), {}));
}

}  // namespace
}  // namespace trireme::text
