#include "trireme/data/json_lines_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"
#include "trireme/base/json.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class JsonLinesRecordsTest : public FolderFiles {
 protected:
  std::string complaint(const std::string& name, std::string_view content) const {
    const auto path = write(name, content);
    const Error error = error_of([&] { const JsonLinesRecords records({path}); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(name));
    return error.message();
  }
};

TEST_F(JsonLinesRecordsTest, KeysAreTheFieldsOfALine) {
  const JsonLinesRecords records({write("a.jsonl",
                                        "{\"text\": \"one \\u00e9\\n\", \"id\": 7}\n"
                                        "  {\"text\": \"\", \"tags\": [1, \"two\", null], \"in\": "
                                        "{\"b\": 2, \"a\": 1.50}} \r\n"),
                                  write("b.jsonl", "{\"is_so\": true}")});
  ASSERT_EQ(records.num_records(), 3);
  EXPECT_THAT(records.fields(0), ElementsAre("id", "text"));
  EXPECT_EQ(text_of(records.read(0, "text")), "one \xC3\xA9\n");
  EXPECT_EQ(text_of(records.read(0, "id")), "7");
  EXPECT_EQ(text_of(records.read(1, "text")), "");
  EXPECT_EQ(text_of(records.read(1, "tags")), R"([1,"two",null])");
  EXPECT_EQ(text_of(records.read(1, "in")), R"({"a":1.5,"b":2})");
  EXPECT_EQ(text_of(records.read(2, "is_so")), "true");
  EXPECT_THAT(records.name(1), AllOf(HasSubstr("line 2 of "), HasSubstr("a.jsonl")));
  EXPECT_THAT(records.name(2), AllOf(HasSubstr("line 1 of "), HasSubstr("b.jsonl")));
}

/// Objects of random texts, keys and sizes; some lines are longer than what is read at once.
TEST_F(JsonLinesRecordsTest, WhatIsWrittenIsReadInEveryPacking) {
  std::mt19937_64 random(11);
  const auto letters = [&](std::uint64_t most) {
    std::string text;
    for (std::uint64_t i = random() % (most + 1); i > 0; --i) {
      constexpr std::string_view kLetters[] = {
          "a", "\"", "\\", "\n", "\xC3\xA9", "\xF0\x9F\x9B\xB6", "{", "}"};
      text += kLetters[random() % std::size(kLetters)];
    }
    return text;
  };
  std::vector<std::map<std::string, std::string>> written;
  std::string shards[3];
  for (int i = 0; i < 90; ++i) {
    written.push_back({{"id", std::to_string(i)}});
    for (std::uint64_t k = random() % 4; k > 0; --k) {
      written.back()["k" + letters(3)] = letters(i == 40 ? 400000 : 60);
    }
    Json line;
    for (const auto& [key, value] : written.back()) line[key] = value;
    shards[i / 30] += compact_text(line) + (i % 30 < 29 || random() % 2 == 0 ? "\n" : "");
  }
  const JsonLinesRecords records({write("0.jsonl", shards[0]), write("1.jsonl.gz", gzip(shards[1])),
                                  write("2.jsonl.zst", zstd(shards[2]))});
  ASSERT_EQ(records.num_records(), std::ssize(written));
  for (int i = 89; i >= 0; --i) {
    EXPECT_EQ(records.fields(i).size(), written[i].size());
    for (const auto& [key, value] : written[i]) {
      EXPECT_TRUE(text_of(records.read(i, key)) == value) << i << " " << key;
    }
  }
}

TEST_F(JsonLinesRecordsTest, ALineThatIsNoObjectIsNamed) {
  EXPECT_THAT(complaint("x.jsonl", ""), HasSubstr("is empty"));
  EXPECT_THAT(complaint("x.jsonl", "\n"), HasSubstr("line 1 is empty"));
  EXPECT_THAT(complaint("x.jsonl", "{}\n \n{}\n"), HasSubstr("line 2 is empty"));
  EXPECT_THAT(complaint("x.jsonl", "{}\n[1]\n{}\n"), HasSubstr("line 2 is no JSON object"));
  EXPECT_THAT(complaint("x.jsonl", "{}\n{}\n{\"a\": \"b"), HasSubstr("line 3 is no JSON object"));
  EXPECT_THAT(complaint("x.jsonl", "{}\n{\"a\": {}"),
              AllOf(HasSubstr("line 2 of "), HasSubstr("not valid JSON")));
  EXPECT_THAT(complaint("x.jsonl", "{} {}\n{}"), HasSubstr("line 1 of "));
  EXPECT_THAT(complaint("x.jsonl.gz", gzip("{}\n{}\n").substr(0, 20)), HasSubstr("is cut off"));
  EXPECT_THAT(complaint("x.jsonl.zst", "{}\n"), HasSubstr("no zstd file"));
  EXPECT_THAT(complaint("x.jsonl.gz", gzip("")), HasSubstr("is empty"));
}

TEST_F(JsonLinesRecordsTest, WhatCannotBeReadIsNamed) {
  const auto path = write(
      "x.jsonl", "{}\n{\"a\": \"\xFF\"}\n{\"a\" 1}\n{\"a\": 1, \"a\": 2}\n{\"b\": 1, \"c\": 2}\n");
  const JsonLinesRecords records({path});
  const auto problem = [&](std::int64_t index, ErrorKind kind) {
    const Error error = error_of([&] { records.read(index, "a"); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.message();
  };
  EXPECT_THAT(
      problem(0, ErrorKind::kInvalidArgument),
      AllOf(HasSubstr("line 1 of "), HasSubstr("x.jsonl"), HasSubstr("no field 'a'; it has none")));
  EXPECT_THAT(problem(1, ErrorKind::kCorruptData),
              AllOf(HasSubstr("line 2 of "), HasSubstr("UTF-8")));
  EXPECT_THAT(problem(2, ErrorKind::kCorruptData), HasSubstr("line 3 of "));
  EXPECT_THAT(problem(3, ErrorKind::kCorruptData),
              AllOf(HasSubstr("line 4 of "), HasSubstr("twice")));
  EXPECT_THAT(problem(4, ErrorKind::kInvalidArgument), HasSubstr("'a'; it has b c"));
  EXPECT_THAT(problem(5, ErrorKind::kInvalidArgument), HasSubstr("no record 5 among 5"));
  EXPECT_THAT(problem(-1, ErrorKind::kInvalidArgument), HasSubstr("no record -1"));
  write("x.jsonl", "{\"a\": 1}\n");
  EXPECT_THAT(problem(0, ErrorKind::kCorruptData), HasSubstr("has changed since it was opened"));
  std::filesystem::remove(path);
  EXPECT_THAT(problem(0, ErrorKind::kIo), HasSubstr("x.jsonl"));
}

TEST_F(JsonLinesRecordsTest, UnpackedShardsTakeNoMoreRoomThanTheyMay) {
  const auto path = write("x.jsonl.gz", gzip("{\"a\": 1}\n{\"a\": 2}\n"));
  EXPECT_EQ(JsonLinesRecords({path}, {.folder = folder, .max_bytes = 18}).num_records(), 2);
  const Error error = error_of([&] { const JsonLinesRecords records({path}, {.max_bytes = 17}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("x.jsonl.gz"), HasSubstr("unpack them beforehand")));
  EXPECT_EQ(
      error_of([&] { const JsonLinesRecords records({path}, {.folder = folder / "none"}); }).kind(),
      ErrorKind::kIo);
}

TEST_F(JsonLinesRecordsTest, ThreadsReadAtOnce) {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "{\"a\": " + std::to_string(i) + "}\n";
  const JsonLinesRecords records({write("x.jsonl.gz", gzip(lines)), write("y.jsonl", lines)});
  std::vector<std::string> read(800);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < read.size(); i += 4) {
        read[i] = text_of(records.read(static_cast<std::int64_t>(i), "a"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], std::to_string(i % 400));
}

TEST_F(JsonLinesRecordsTest, IdentityTellsTheLengthsOfLines) {
  const auto identity = [&](const std::string& name, std::string_view content) {
    return JsonLinesRecords({write(name, content)}).identity();
  };
  const std::string base = identity("a.jsonl", "{}\n{\"a\": 1}\n");
  EXPECT_EQ(base, identity("b.jsonl", "{}\n{\"a\": 1}\n"));
  EXPECT_NE(base, identity("c.jsonl", "{\"a\": 1}\n{}\n"));
}

}  // namespace
}  // namespace trireme::data
