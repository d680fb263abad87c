#include "trireme/data/table_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "tests/data/folder_files.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// Tables that pyarrow wrote (tests/data/tables/make.py): ten rows, null in row 3.
class TableRecordsTest : public FolderFiles {
 protected:
  void SetUp() override {
    try {
      load_table_library();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnavailable) throw;
      GTEST_SKIP() << "no pyarrow: " << error.message();
    }
  }

  static fs::path table(const std::string& name) { return fs::path("tests/data/tables") / name; }

  static std::string content(const std::string& name) {
    std::ifstream file(table(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::string value(const RecordSource& records, std::int64_t index,
                           std::string_view field) {
    return text_of(records.read(index, field));
  }

  static Error failure(const RecordSource& records, std::int64_t index, std::string_view field) {
    return error_of([&] { records.read(index, field); });
  }

  static Error open_failure(const std::vector<fs::path>& paths) {
    return error_of([&] { open_records(paths); });
  }
};

template <typename... Numbers>
std::string bytes_as(Numbers... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

std::string repeated(std::string_view text, std::int64_t times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

/// What row `i` has in each column but `points`.
std::map<std::string, std::string> row_of(std::int64_t i) {
  const auto n = static_cast<std::int32_t>(i);
  std::string tokens;
  for (std::int32_t k = 0; k < n; ++k) tokens += bytes_as(k);
  std::map<std::string, std::string> row = {
      {"id", bytes_as(i - 5)},
      {"small", bytes_as(static_cast<std::uint8_t>(i))},
      {"flag", bytes_as(i % 3 == 0)},
      {"real", bytes_as(static_cast<float>(i) / 4)},
      {"word", repeated("é", i)},
      {"blob", std::string(static_cast<std::size_t>(i), static_cast<char>(i))},
      {"fixed", "00" + std::to_string(i)},
      {"kind", i % 2 == 0 ? "cat" : "dog"},
      {"day", bytes_as(n)},
      {"moment", bytes_as(i * 1000)},
      {"tokens", tokens},
      {"flags", bytes_as(i % 2 == 0, true)},
      {"box", bytes_as(double(n), 1., 2., 3.)},
      {"image.bytes", "\x89PNG" + std::to_string(i)},
      {"deep.a.b", bytes_as(i)},
      {"deep.c", bytes_as(i)},
  };
  if (i == 3) {
    for (const char* name : {"real", "word", "tokens", "image.bytes"}) row.erase(name);
  }
  return row;
}

TEST_F(TableRecordsTest, EachTypeIsReadFromEachForm) {
  for (const std::string name : {"snappy.parquet", "zstd.parquet", "plain.parquet", "file.arrow",
                                 "zstd.feather", "stream.arrow"}) {
    const auto records = open_records({table(name)});
    ASSERT_EQ(records->num_records(), 10) << name;
    for (std::int64_t i = 0; i < 10; ++i) {
      for (const auto& [field, expected] : row_of(i)) {
        if (name == "stream.arrow" && field == "kind") continue;
        EXPECT_EQ(value(*records, i, field), expected) << name << " " << field << " " << i;
      }
    }
    EXPECT_EQ(value(*records, 4, "half"), bytes_as(std::uint16_t{0x4000})) << "2";
    EXPECT_THAT(records->fields(9), Contains("image.path"));
    EXPECT_THAT(records->fields(9), Not(Contains("image")));
    EXPECT_EQ(records->name(9), "record 9 of 'tests/data/tables/" + name + "'");
  }
}

TEST_F(TableRecordsTest, ListsOfListsOfALengthAreReadWhereTheTypeSaysIt) {
  const std::string expected =
      bytes_as(std::int8_t{2}, std::int8_t{0}, std::int8_t{2}, std::int8_t{1});
  for (const std::string name : {"snappy.parquet", "file.arrow"}) {
    EXPECT_EQ(value(*open_records({table(name)}), 2, "points"), expected) << name;
  }
  EXPECT_THAT(failure(*open_records({table("plain.parquet")}), 2, "points").message(),
              HasSubstr("list<element: list<element: int8>>"));
}

TEST_F(TableRecordsTest, ANullIsDamageOfThatRecordAlone) {
  for (const std::string name : {"snappy.parquet", "file.arrow", "zstd.feather"}) {
    const auto records = open_records({table(name)});
    for (const std::string field : {"real", "word", "tokens", "image.bytes", "image.path"}) {
      const Error error = failure(*records, 3, field);
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      EXPECT_THAT(error.message(), AllOf(HasSubstr("record 3 of 'tests/data/tables/" + name),
                                         HasSubstr("'" + field + "'"), HasSubstr("is null")));
    }
    EXPECT_THAT(failure(*records, 5, "holes").message(),
                AllOf(HasSubstr("'holes' of type list<"), HasSubstr("holds a null")));
  }
}

TEST_F(TableRecordsTest, TypesWithoutAFormAreRefusedWhereTheyAreRead) {
  const auto records = open_records({table("snappy.parquet")});
  for (const std::string field : {"nested", "words", "price", "counts"}) {
    const Error error = failure(*records, 0, field);
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("record 0 of '"), HasSubstr("'" + field + "' is of type"),
                      HasSubstr("expected text, bytes, numbers")));
  }
  EXPECT_THAT(failure(*records, 0, "price").message(), HasSubstr("decimal128(10, 2)"));
  EXPECT_THAT(failure(*open_records({table("stream.arrow")}), 0, "kind").message(),
              HasSubstr("of a stream, which is not read"));
  EXPECT_THAT(failure(*records, 0, "image").message(),
              AllOf(HasSubstr("has no field 'image'"), HasSubstr("image.bytes")));
  EXPECT_THAT(failure(*records, 10, "id").message(), HasSubstr("no record 10 among 10"));
}

TEST_F(TableRecordsTest, FilesFollowEachOther) {
  const auto records = open_records({table("snappy.parquet"), table("zstd.parquet")});
  ASSERT_EQ(records->num_records(), 20);
  EXPECT_EQ(value(*records, 14, "id"), bytes_as(std::int64_t{-1}));
  EXPECT_EQ(records->name(14), "record 4 of 'tests/data/tables/zstd.parquet'");
  const auto alone = open_records({table("snappy.parquet")});
  EXPECT_NE(records->identity(), alone->identity());
  EXPECT_EQ(alone->identity(),
            open_records({write("x.parquet", content("snappy.parquet"))})->identity());
}

TEST_F(TableRecordsTest, OtherColumnsThanTheFirstFilesAreRefused) {
  const Error error = open_failure({table("other.parquet"), table("snappy.parquet")});
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(
      error.message(),
      AllOf(HasSubstr("snappy.parquet' has column 'id' of int64"),
            HasSubstr("'tests/data/tables/other.parquet', where column 0 is 'id' of int32")));
  EXPECT_THAT(open_failure({table("snappy.parquet"), table("plain.parquet")}).message(),
              HasSubstr("plain.parquet' has column 'blob' of binary"));
}

TEST_F(TableRecordsTest, WhatIsCutOffIsNoSmallerDataSet) {
  for (const std::string name : {"snappy.parquet", "file.arrow", "stream.arrow"}) {
    const std::string whole = content(name);
    for (const double part : {0.01, 0.2, 0.5, 0.9, 0.999}) {
      const auto bytes = static_cast<std::size_t>(part * static_cast<double>(whole.size()));
      const auto path = write(name, whole.substr(0, std::max<std::size_t>(bytes, 3)));
      const Error error = open_failure({path});
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(path.string()));
    }
  }
  const std::string stream = content("stream.arrow");
  EXPECT_THAT(open_failure({write("x.arrow", stream.substr(0, stream.size() - 8))}).message(),
              HasSubstr("its writer was not closed"))
      << "cut between batches";
  EXPECT_EQ(open_failure({write("text.parquet", "a,b\n1,2\n3,4\n5,6\n")}).kind(),
            ErrorKind::kCorruptData);
  EXPECT_EQ(open_failure({write("text.arrow", "a,b\n1,2\n3,4\n5,6\n")}).kind(),
            ErrorKind::kCorruptData);
  EXPECT_THAT(open_failure({write("old.feather", "FEA1....FEA1")}).message(),
              HasSubstr("old.feather' is Feather of version 1"));
}

TEST_F(TableRecordsTest, AFileThatGetsShorterMeanwhileIsSeen) {
  for (const std::string name : {"snappy.parquet", "file.arrow"}) {
    const std::string whole = content(name);
    const auto path = write(name, whole);
    const auto records = open_records({path});
    value(*records, 0, "id");
    fs::resize_file(path, whole.size() / 2);
    const Error error = failure(*records, 9, "id");
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(path.string()), HasSubstr("has changed since")));
  }
}

TEST_F(TableRecordsTest, WhatIsMissingIsSaidWithWhatToInstall) {
  write("arrow/libparquet.so.2600", "no library");
  for (const std::string name : {"nothing", "arrow"}) {
    ::setenv("TRIREME_ARROW_DIR", (folder / name).c_str(), 1);
    const Error error = open_failure({table("snappy.parquet")});
    ::unsetenv("TRIREME_ARROW_DIR");
    EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
    EXPECT_THAT(error.message(), AllOf(HasSubstr((folder / name).string()), HasSubstr("pyarrow")));
  }
}

TEST_F(TableRecordsTest, LengthsBelowZeroAreDamage) {
  const auto records = open_records({table("negative.arrow")});
  EXPECT_EQ(records->num_records(), 77);
  const Error error = failure(*records, 0, "a.b");
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(),
              HasSubstr("record batch 0: field 'a.b' of type int64 cannot be read: "));
}

/// Each byte that is wrong gives an error, or other values; a checksum of a page finds those.
TEST_F(TableRecordsTest, DamageEndsNothing) {
  std::mt19937 random(7);
  for (const std::string name :
       {"snappy.parquet", "zstd.parquet", "file.arrow", "stream.arrow", "zstd.feather"}) {
    const std::string whole = content(name);
    int num_refused = 0;
    for (int i = 0; i < 60; ++i) {
      std::string damaged = whole;
      for (int k = 0; k < 3; ++k)
        damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
      const auto path = write(name, damaged);
      try {
        const auto records = open_records({path});
        for (std::int64_t row = 0; row < std::min<std::int64_t>(records->num_records(), 10);
             ++row) {
          for (const auto& [field, expected] : row_of(row)) value(*records, row, field);
        }
      } catch (const Error& error) {
        ++num_refused;
        EXPECT_THAT(error.message(), HasSubstr(path.string())) << error.what();
      }
    }
    EXPECT_GT(num_refused, 5) << name;
  }
}

TEST_F(TableRecordsTest, ThreadsReadTheSameInAnyOrder) {
  for (const std::string name : {"snappy.parquet", "file.arrow"}) {
    const auto records = open_records({table(name)}, {.cache_bytes = 4000});
    std::vector<std::thread> threads;
    std::atomic<int> num_wrong = 0;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 200; ++i) {
          const auto row = static_cast<std::int64_t>(random() % 10);
          for (const auto& [field, expected] : row_of(row)) {
            if (random() % 4 == 0 && value(*records, row, field) != expected) ++num_wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(num_wrong, 0);
  }
}

}  // namespace
}  // namespace trireme::data
