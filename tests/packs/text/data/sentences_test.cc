#include "packs/text/data/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Sentences, EndAtStopsBeforeWhatMayBeginOne) {
  EXPECT_THAT(sentences_of("It ran. Then (why?) it sat!  \"Oh.\" 3 of 4."),
              ElementsAre("It ran.", "Then (why?) it sat!", "\"Oh.\"", "3 of 4."));
  EXPECT_THAT(sentences_of("pi is 3.14 i.e. more than 3"),
              ElementsAre("pi is 3.14 i.e. more than 3"));
  EXPECT_THAT(sentences_of("So... it went on... No. \u00c9t\u00e9."),
              ElementsAre("So... it went on...", "No.", "\u00c9t\u00e9."));
}

TEST(Sentences, EndWithTheirLines) {
  EXPECT_THAT(sentences_of("x = 1\n\n  y = 2  \r\n"), ElementsAre("x = 1", "y = 2"));
  EXPECT_THAT(sentences_of(" \n\n"), IsEmpty());
  EXPECT_THAT(sentences_of(""), IsEmpty());
}

TEST(Paragraphs, AreWhatIsBetweenBlankLines) {
  EXPECT_THAT(paragraphs_of("\n\na\nb\n \t\nc\n\n\n"), ElementsAre("a\nb", "c"));
  EXPECT_THAT(paragraphs_of("a"), ElementsAre("a"));
  EXPECT_THAT(paragraphs_of("\n"), IsEmpty());
  EXPECT_THAT(paragraphs_of(""), IsEmpty());
}

}  // namespace
}  // namespace trireme::text
