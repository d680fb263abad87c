#include "packs/text/data/word_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmallVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\naff\n##a\n.\n##\xC3\xA9\n";

WordPieces small() { return WordPieces::from_vocabulary(kSmallVocabulary, "small"); }

std::string text_of(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) text += (text.empty() ? "" : " ") + std::to_string(token);
  return text;
}

TEST(WordPieces, TheLongestPieceIsTaken) {
  EXPECT_THAT(small().encode("Unaffable."), ElementsAre(5, 6, 7, 10));
  EXPECT_THAT(small().encode("aff aff"), ElementsAre(8, 8));
}

TEST(WordPieces, AWordOfWhichAPartIsNoPieceIsUnknown) {
  EXPECT_THAT(small().encode("unaffx aff"), ElementsAre(1, 8));
  EXPECT_THAT(small().encode("[CLS]"), ElementsAre(1, 1, 1)) << "no special token in a text";
  EXPECT_THAT(small().encode(""), testing::IsEmpty());
}

TEST(WordPieces, AWordOfMoreThan200CharactersIsUnknown) {
  const std::string longest = "un" + std::string(198, 'a');
  EXPECT_EQ(small().encode(longest).size(), 199U);
  EXPECT_THAT(small().encode(longest + "a"), ElementsAre(1));
}

TEST(WordPieces, DecodingJoinsThePiecesOfWords) {
  EXPECT_EQ(small().decode(std::vector<Token>{2, 5, 6, 7, 10, 3}), "[CLS] unaffable . [SEP]");
  const Error error = error_of([] { (void)small().decode(std::vector<Token>{12}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("no token 12 in a vocabulary of 12"));
}

TEST(WordPieces, AFileWithoutTheSpecialPiecesIsRefused) {
  const Error error =
      error_of([] { WordPieces::from_vocabulary("[PAD]\n[UNK]\n[CLS]\nthe\n", "words.txt"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), testing::AllOf(HasSubstr("'words.txt'"), HasSubstr("no [SEP]")));
}

TEST(WordPieces, TrainedOnATextTheyCutItIntoFewKnownPieces) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(sample_code(i, 8));
  const WordPieces pieces = WordPieces::train(texts, {.num_pieces = 300});
  EXPECT_EQ(pieces.vocabulary_size(), 300);
  EXPECT_EQ(pieces.sha256(), WordPieces::train(texts, {.num_pieces = 300}).sha256());
  const auto tokens = pieces.encode("def compute_buffer_12(value):\n  return RESULT");
  EXPECT_THAT(tokens, testing::Each(testing::Gt(4)));
  EXPECT_EQ(pieces.decode(tokens), "def compute _ buffer _ 12 ( value ) : return result");
  EXPECT_LT(tokens.size(), 16U);
}

TEST(WordPieces, WithoutAnyTextNothingIsTrained) {
  const std::vector<std::string> texts = {" \n", ""};
  EXPECT_THAT(error_of([&] { WordPieces::train(texts); }).message(), HasSubstr("no text"));
}

// The answers of google-research/bert to edge cases and sentences of MNLI.
TEST(WordPieces, AreThoseOfTheSource) {
  const std::filesystem::path data = public_data("vocab-bert-uncased");
  if (data.empty()) GTEST_SKIP() << "no ../shared/data/vocab-bert-uncased";
  const WordPieces pieces = WordPieces::load(data / "vocab.txt");
  EXPECT_EQ(pieces.vocabulary_size(), 30522);
  EXPECT_EQ(pieces.special().mask, 103);
  std::ifstream file(data / "wordpiece_expected.tsv");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    EXPECT_EQ(text_of(pieces.encode(line.substr(0, tab))), line.substr(tab + 1)) << line;
  }
  EXPECT_EQ(rows, 511);
}

}  // namespace
}  // namespace trireme::text
