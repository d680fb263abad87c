#include "trireme/data/csv_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CsvRecordsTest : public FolderFiles {
 protected:
  std::string complaint(std::string_view content, const CsvOptions& options = {},
                        const std::string& name = "x.csv") const {
    const auto path = write(name, content);
    const Error error = error_of([&] { const CsvRecords records({path}, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(name));
    return error.message();
  }
};

TEST_F(CsvRecordsTest, ColumnsAreTheFieldsOfARow) {
  const CsvRecords records({write("a.csv",
                                  "text,label\r\n"
                                  "one,1\r\n"
                                  "\"two, \"\"quoted\"\"\nand a line more\",\" 2\"\r\n"
                                  "\n"
                                  " spaces stay ,\t\n"),
                            write("b.csv", "\xEF\xBB\xBFtext,label\n,4")});
  ASSERT_EQ(records.num_records(), 4);
  EXPECT_THAT(records.fields(3), ElementsAre("text", "label"));
  EXPECT_EQ(text_of(records.read(0, "text")), "one");
  EXPECT_EQ(text_of(records.read(1, "text")), "two, \"quoted\"\nand a line more");
  EXPECT_EQ(text_of(records.read(1, "label")), " 2");
  EXPECT_EQ(text_of(records.read(2, "text")), " spaces stay ");
  EXPECT_EQ(text_of(records.read(2, "label")), "\t");
  EXPECT_EQ(text_of(records.read(3, "text")), "");
  EXPECT_EQ(text_of(records.read(3, "label")), "4");
  EXPECT_THAT(records.name(1), AllOf(HasSubstr("row 2 of '"), HasSubstr("a.csv'")));
  EXPECT_THAT(records.name(3), AllOf(HasSubstr("row 1 of '"), HasSubstr("b.csv'")));
}

TEST_F(CsvRecordsTest, ColumnsMayBeNamedAndSeparatedOtherwise) {
  const CsvRecords records(
      {write("x.tsv", "he said \"a, b\"\t0\n\"\t1\n")},
      {.format = {.separator = '\t', .has_quotes = false}, .columns = {"text", "label"}});
  ASSERT_EQ(records.num_records(), 2);
  EXPECT_EQ(text_of(records.read(0, "text")), "he said \"a, b\"");
  EXPECT_EQ(text_of(records.read(1, "text")), "\"");
  EXPECT_EQ(text_of(records.read(1, "label")), "1");
}

/// Values of all that is special, written with as many quotes as must be, or more.
TEST_F(CsvRecordsTest, WhatIsWrittenIsReadInEveryPacking) {
  std::mt19937_64 random(5);
  const auto value = [&](std::uint64_t most) {
    std::string text;
    for (std::uint64_t i = random() % (most + 1); i > 0; --i) {
      constexpr std::string_view kLetters[] = {"a", "\"", ",", "\n", "\r\n", " ", "\xC3\xA9", "\t"};
      text += kLetters[random() % std::size(kLetters)];
    }
    return text;
  };
  const auto written_as = [&](const std::string& text) {
    if (text.find_first_of("\",\r\n") == std::string::npos && random() % 2 == 0) return text;
    std::string quoted = "\"";
    for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    return quoted + "\"";
  };
  std::vector<std::array<std::string, 3>> rows(120);
  std::string shards[3];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string& shard = shards[i / 40];
    if (i % 40 == 0) shard = "a,\"b\",c\n";
    for (std::size_t c = 0; c < 3; ++c) {
      rows[i][c] = value(i == 50 ? 400000 : 12);
      shard += (c > 0 ? "," : "") + written_as(rows[i][c]);
    }
    shard += i % 40 == 39 && !rows[i][2].empty() ? "" : random() % 2 == 0 ? "\n" : "\r\n";
  }
  const CsvRecords records({write("0.csv", shards[0]), write("1.csv.gz", gzip(shards[1])),
                            write("2.csv.zst", zstd(shards[2]))});
  ASSERT_EQ(records.num_records(), std::ssize(rows));
  for (std::int64_t i = std::ssize(rows) - 1; i >= 0; --i) {
    for (const std::string field : {"a", "b", "c"}) {
      EXPECT_TRUE(text_of(records.read(i, field)) == rows[i][field[0] - 'a']) << i << field;
    }
  }
}

TEST(CsvRows, CountsOfPlainRowsAreTheParsers) {
  std::mt19937_64 random(9);
  int num_plain = 0, num_others = 0;
  for (int i = 0; i < 20000; ++i) {
    constexpr std::string_view kLetters[] = {"a", "\"", ",", "\"a,\"", "\r", {"\0", 1}, "b"};
    std::string line;
    for (std::uint64_t k = random() % 6; k > 0; --k) {
      line += kLetters[random() % std::size(kLetters)];
    }
    line += random() % 2 == 0 ? "\n" : "\r\n";
    const CsvFormat format{.has_quotes = random() % 4 > 0};
    CsvRows rows(format);
    const std::size_t count = rows.num_plain_values(line);
    if (count == 0) {
      ++num_others;
      continue;
    }
    ++num_plain;
    ASSERT_TRUE(rows.add(line)) << line;
    ASSERT_EQ(rows.values().size(), count) << line;
  }
  EXPECT_GT(num_plain, 2000);
  EXPECT_GT(num_others, 2000);
  EXPECT_EQ(CsvRows({}).num_plain_values("1,\"two, and\",3\r\n"), 3U);
  EXPECT_EQ(CsvRows({}).num_plain_values("1,two"), 0U) << "the file may go on";
}

TEST_F(CsvRecordsTest, ARowThatIsNoneIsNamedByItsLine) {
  EXPECT_THAT(complaint("a,b\n1,2\n3\n"),
              AllOf(HasSubstr("line 3: there are 1 columns; expected 2: 'a', 'b'")));
  EXPECT_THAT(complaint("a,b\n\n\"1\n\n1\",2\n\n\"3\n\",4,5\n"),
              HasSubstr("line 7 to 8: there are 3"));
  EXPECT_THAT(complaint("a,b\n1,2\n3"), HasSubstr("line 3: there are 1 columns")) << "cut off";
  EXPECT_THAT(complaint("a,b\n1,2\n3,\"4\n5\n"), HasSubstr("line 3 to 5: a quote is open"));
  EXPECT_THAT(complaint("a,b\n1,2\n3,4\"\n"), HasSubstr("line 3: a quote stands within"));
  EXPECT_THAT(complaint("a,b\n1,2\n\"3\" ,4\n"), HasSubstr("line 3: a quote stands within"));
  EXPECT_THAT(complaint("a,b\n\"1"), HasSubstr("line 2: a quote is open"));
  EXPECT_THAT(complaint("a,b\r1,2\r"), HasSubstr("carriage return alone"));
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint("a,b\n"), HasSubstr("has no rows"));
  EXPECT_THAT(complaint("\n\n"), HasSubstr("has no rows"));
  EXPECT_THAT(complaint("a,a\n1,2\n"), HasSubstr("line 1: has two columns 'a'"));
  EXPECT_THAT(complaint("a,\n1,2\n"), HasSubstr("without a name among 'a', ''"));
  EXPECT_THAT(complaint("a,\xFF\n1,2\n"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(complaint(gzip("a\n1\n2\n").substr(0, 15), {}, "x.csv.gz"), HasSubstr("is cut off"));
  const std::string_view nul("a\n1\0\n", 5);
  EXPECT_THAT(complaint(nul, {.format = {.has_quotes = false}}), HasSubstr("line 2: "));
}

TEST_F(CsvRecordsTest, ShardsHaveTheSameColumns) {
  const auto a = write("a.csv", "text,label\n1,2\n"), b = write("b.csv", "label,text\n1,2\n");
  const Error error = error_of([&] { const CsvRecords records({a, b}); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("b.csv' line 1: the columns are 'label', 'text'; expected those of"),
                    HasSubstr("a.csv': 'text', 'label'")));
  for (const std::vector<std::string>& columns : {std::vector<std::string>{"a", ""}, {"a", "a"}}) {
    EXPECT_EQ(error_of([&] { const CsvRecords records({a}, {.columns = columns}); }).kind(),
              ErrorKind::kInvalidArgument);
  }
}

TEST_F(CsvRecordsTest, WhatCannotBeReadIsNamed) {
  const auto path = write("x.csv", "a,b\n1,2\n\xE9t\xE9,4\n");
  const CsvRecords records({path});
  EXPECT_THAT(error_of([&] { records.read(0, "c"); }).message(),
              AllOf(HasSubstr("row 1 of '"), HasSubstr("no field 'c'; it has 'a', 'b'")));
  const Error error = error_of([&] { records.read(1, "a"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("row 2 of '"), HasSubstr("field 'a' is not UTF-8")));
  EXPECT_EQ(text_of(records.read(1, "b")), "4");
  EXPECT_THAT(error_of([&] { records.fields(2); }).message(), HasSubstr("no record 2 among 2"));
  write("x.csv", "a,b\n1;2\n\xE9t\xE9,4\n");
  EXPECT_THAT(error_of([&] { records.read(0, "a"); }).message(), HasSubstr("row 1 of '"));
}

TEST_F(CsvRecordsTest, IdentityTellsColumnsAndLengths) {
  const auto identity = [&](const std::string& name, std::string_view content) {
    return CsvRecords({write(name, content)}).identity();
  };
  const std::string base = identity("a.csv", "a,b\n1,2\n3,4\n");
  EXPECT_EQ(base, identity("b.csv", "a,b\n1,2\n3,4\n"));
  EXPECT_NE(base, identity("c.csv", "a,c\n1,2\n3,4\n"));
  EXPECT_NE(base, identity("d.csv", "a,b\n1,22\n,4\n"));
}

}  // namespace
}  // namespace trireme::data
