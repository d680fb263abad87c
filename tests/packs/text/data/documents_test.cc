#include "packs/text/data/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utf8.h>

#include <algorithm>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Documents : public TextFolder {
 protected:
  /// All documents of a file of that content, with the counts in `report`.
  std::vector<std::string> read(const std::string& name, std::string_view content,
                                std::int64_t max_bytes = kMaxDocumentBytes) {
    report = {};
    TextReader reader({{write(name, content), 0, 0}}, max_bytes);
    std::vector<std::string> documents;
    while (auto raw = reader.next()) {
      for (std::string& one : documents_of(std::move(*raw), max_bytes, report)) {
        documents.push_back(std::move(one));
      }
    }
    report += reader.report();
    return documents;
  }

  TextReport report;
};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

TEST_F(Documents, APlainFileIsOne) {
  const std::string code = "def f():\r\n\treturn 1\n\n\n";
  EXPECT_THAT(read("a.py", code), ElementsAre(code));
  EXPECT_EQ(report, (TextReport{.bytes = static_cast<std::int64_t>(code.size()), .documents = 1}));
}

TEST_F(Documents, AnEmptyFileIsNone) {
  EXPECT_THAT(read("a.txt", ""), ElementsAre());
  EXPECT_EQ(report, (TextReport{.empty = 1}));
}

TEST_F(Documents, ABinaryFileIsNone) {
  EXPECT_THAT(read("a.pyc", std::string_view("code\0more", 9)), ElementsAre());
  EXPECT_EQ(report.binary, 1);
  EXPECT_EQ(report.documents, 0);
  std::string late(1000, 'x');
  late[900] = '\0';
  EXPECT_LT(joined(read("b", late, 100)).size(), 901U);
  EXPECT_EQ(report.binary, 1);
}

TEST_F(Documents, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_THAT(read("a", "caf\xE9 \xFF\xFE and \xC3"),
              ElementsAre("caf\uFFFD \uFFFD\uFFFD and \uFFFD"));
  EXPECT_EQ(report.repaired, 1);
  EXPECT_EQ(report.replaced, 4);
  EXPECT_THAT(read("b", "a good \uFFFD"), ElementsAre("a good \uFFFD"));
  EXPECT_EQ(report.repaired, 0);
  EXPECT_THAT(read("c.jsonl", "{\"text\": \"caf\xE9\"}"), ElementsAre("caf\uFFFD"));
  EXPECT_EQ(report.replaced, 1);
}

TEST_F(Documents, LongOnesAreCutBeforeWhiteSpace) {
  EXPECT_THAT(read("a", "one two three four five", 16), ElementsAre("one two three", " four five"));
  EXPECT_EQ(report.cut, 1);
  EXPECT_EQ(report.documents, 2);
  EXPECT_THAT(read("b.jsonl", R"({"text": "one two three four five"})", 16),
              ElementsAre("one two three", " four five"));
  EXPECT_EQ(report.cut, 1);
}

TEST_F(Documents, CutsKeepCharactersWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += i % 3 == 0 ? "\u4e2d" : i % 3 == 1 ? "\U0001F600" : "x";
  for (const std::int64_t limit : {16, 17, 18, 19, 1000}) {
    const std::vector<std::string> parts = read("a", text, limit);
    EXPECT_EQ(joined(parts), text);
    EXPECT_EQ(report.repaired, 0);
    for (const std::string& part : parts) {
      EXPECT_LE(part.size(), static_cast<std::size_t>(limit));
      EXPECT_TRUE(utf8::is_valid(part.begin(), part.end()));
    }
  }
}

TEST_F(Documents, CutsOfAnythingAddUp) {
  for (const std::size_t size : {15, 16, 17, 31, 32, 33, 262'144, 300'000}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += i * i % 7 == 0 ? ' ' : 'a';
    EXPECT_EQ(joined(read("a", text, 16)), text) << size;
    std::fill(text.begin(), text.end(), '\x80');  // nothing but continuations
    EXPECT_EQ(joined(read("b", text, 16)).size(), 3 * size) << "U+FFFD for each";
  }
}

TEST_F(Documents, ALineOfJsonIsOne) {
  EXPECT_THAT(read("a.jsonl",
                   "{\"text\": \"one\\ntwo\", \"url\": [1]}\r\n\n  \n{\"text\":\"three\"}\n"
                   "{\"text\":\"\"}\n{\"text\":\"nul \\u0000\"}\n{\"text\":\"no newline\"}"),
              ElementsAre("one\ntwo", "three", "no newline"));
  EXPECT_EQ(report.documents, 3);
  EXPECT_EQ(report.empty, 1);
  EXPECT_EQ(report.binary, 1);
  EXPECT_THAT(read("b.jsonl", ""), ElementsAre());
  EXPECT_THAT(read("c.jsonl", "\n\n"), ElementsAre());
}

TEST_F(Documents, AWrongLineIsNamed) {
  const std::string good = "{\"text\": \"one\"}\n\n";
  for (const std::string line :
       {"{\"text\": 1}", "{\"body\": \"one\"}", "[\"one\"]", "plain text", "{\"text\": \"one\"",
        "{\"text\": \"\\ud800\"}", "{\"text\": \"one\"} {\"text\": \"two\"}"}) {
    const Error error = error_of([&] { read("a.jsonl", good + line + "\n" + good); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << line;
    EXPECT_THAT(error.message(), HasSubstr("a.jsonl line 3")) << line;
  }
}

TEST_F(Documents, LimitsMustHoldACharacter) {
  EXPECT_EQ(error_of([&] { read("a", "text", 15); }).kind(), ErrorKind::kInvalidArgument);
}

TEST_F(Documents, AFileThatWentAwayIsNamed) {
  TextReader reader({{folder / "gone", 0, 0}}, 100);
  const Error error = error_of([&] { reader.next(); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("gone"));
}

TEST_F(Documents, HeldOutByContentAlone) {
  int held_out = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string document = "document " + std::to_string(i);
    EXPECT_FALSE(is_held_out(document, 0));
    EXPECT_TRUE(is_held_out(document, 1));
    if (is_held_out(document, 0.05)) {
      ++held_out;
      EXPECT_TRUE(is_held_out(document, 0.06));
    }
  }
  EXPECT_NEAR(held_out, 100, 40);
}

}  // namespace
}  // namespace trireme::text
