#include "packs/text/data/basic_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(BasicWords, AreLowerCaseWithoutAccents) {
  EXPECT_THAT(basic_words("Héllo  WÖRLD\tÅngström"), ElementsAre("hello", "world", "angstrom"));
  EXPECT_THAT(basic_words("e\u0301te\u0301"), ElementsAre("ete")) << "marks of their own";
  EXPECT_THAT(basic_words("İstanbul"), ElementsAre("istanbul"));
}

TEST(BasicWords, PunctuationIsAWordOfItsOwn) {
  EXPECT_THAT(basic_words("don't(x)$1…"),
              ElementsAre("don", "'", "t", "(", "x", ")", "$", "1", "…"));
}

TEST(BasicWords, IdeographsAreWordsOfTheirOwn) {
  EXPECT_THAT(basic_words("ab中文c"), ElementsAre("ab", "中", "文", "c"));
  EXPECT_THAT(basic_words("カタ"), ElementsAre("カタ")) << "kana are letters";
  EXPECT_THAT(basic_words("\U00020000a"), ElementsAre("\U00020000", "a"));
}

TEST(BasicWords, HangulIsItsLetters) {
  EXPECT_THAT(basic_words("한"), ElementsAre("\u1112\u1161\u11ab"));
}

TEST(BasicWords, ControlCharactersAreLeftOutAndBlanksOfAnyKindSplit) {
  EXPECT_THAT(basic_words(std::string_view("a\0b\u200bc\x7f", 7)), ElementsAre("abc"));
  EXPECT_THAT(basic_words("a\u00a0b\u3000c\u2028d\r\ne"), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(basic_words(" \u200b "), IsEmpty());
}

TEST(BasicWords, WhatIsNotUtf8IsLeftOut) {
  EXPECT_THAT(basic_words("a\xff\xc3z \x80"), ElementsAre("az"));
}

TEST(BasicWords, SigmaIsWrittenAsAtTheEndOfWords) {
  EXPECT_THAT(basic_words("ΟΔΟΣ ΣΑΣ Σ"), ElementsAre("οδος", "σας", "σ"));
}

}  // namespace
}  // namespace trireme::text
