#include "trireme/launch/prefixed_lines.h"

#include <gtest/gtest.h>

namespace trireme::launch::test {
namespace {

TEST(PrefixedLines, JoinThePiecesOfALine) {
  PrefixedLines lines("[3] ");
  std::string text;
  for (const char* piece : {"a", "b\nc", "", "\n\nd\n"}) text += lines.add(piece);
  EXPECT_EQ(text, "[3] ab\n[3] c\n[3] \n[3] d\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLines, EndALastLineOnce) {
  PrefixedLines lines("[3] ");
  EXPECT_EQ(lines.add("last"), "");
  EXPECT_EQ(lines.finish(), "[3] last\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLines, BreakThoseThatAreTooLong) {
  const std::string line(kMaxLine, 'x');
  PrefixedLines lines("[3] ");
  EXPECT_TRUE(lines.add(line + "\n") == "[3] " + line + "\n");
  EXPECT_EQ(lines.add("x"), "");
  EXPECT_TRUE(lines.add(line + "y\n") == "[3] " + line + "\n[3] xy\n");
}

}  // namespace
}  // namespace trireme::launch::test
