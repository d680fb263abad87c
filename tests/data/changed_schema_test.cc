#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/data/folder_files.h"
#include "tests/data/mds_file.h"
#include "tests/data/tar_file.h"
#include "tests/data/tfrecord_file.h"
#include "trireme/data.h"

namespace trireme::data {
namespace {

using testing::HasSubstr;

/// Shards whose second one is not as the first: what is said of it, when they are opened or when the field is read.
struct ChangedSchema {
  std::string name;
  std::string a, b;                ///< Files.
  std::int64_t record = 0;         ///< That is read, if they open.
  std::string field;               ///< That is read; empty: they do not open.
  std::vector<std::string> named;  ///< Shard, record, field.
  ErrorKind kind = ErrorKind::kCorruptData;
};

class ChangedSchemaTest : public FolderFiles {
 protected:
  void expect_named(const ChangedSchema& one, const std::vector<std::filesystem::path>& paths,
                    const RecordFileOptions& options = {}) const {
    SCOPED_TRACE(one.name);
    std::shared_ptr<const RecordSource> records;
    if (!one.field.empty()) records = open_records(paths, options);
    const Error error = error_of([&] {
      if (records) {
        records->read(one.record, one.field);
      } else {
        open_records(paths, options);
      }
    });
    EXPECT_EQ(error.kind(), one.kind);
    for (const std::string& text : one.named) EXPECT_THAT(error.message(), HasSubstr(text));
  }
};

TEST_F(ChangedSchemaTest, LinesNameShardRecordAndField) {
  const std::string good = "{\"label\":1,\"none\":null,\"t\":\"x\"}\n";
  const ChangedSchema rows[] = {
      {.name = "a number that becomes a text",
       .a = good,
       .b = "{\"label\":\"1\",\"t\":\"x\"}\n",
       .record = 1,
       .field = "label",
       .named = {"line 1 of ", "b.jsonl", "'label' is a text; expected a number", "a.jsonl"}},
      {.name = "only in the last line of the shard",
       .a = good,
       .b = good + good + "{\"label\":[1],\"t\":\"x\"}\n",
       .record = 3,
       .field = "label",
       .named = {"line 3 of ", "b.jsonl", "'label' is a list; expected a number"}},
      {.name = "within the shard, where it is read",
       .a = good,
       .b = good + "{\"label\":true,\"t\":\"x\"}\n" + good,
       .record = 2,
       .field = "label",
       .named = {"line 2 of ", "b.jsonl", "'label' is true or false; expected a number"}},
      {.name = "what was null in the first shard",
       .a = good,
       .b = "{\"none\":{}}\n" + good + "{\"none\":3}\n" + good,
       .record = 3,
       .field = "none",
       .named = {"line 3 of ", "'none' is a number; expected an object, as in line 1 of ", "b.js"}},
      {.name = "vanished",
       .a = good,
       .b = "{\"t\":\"x\"}\n",
       .record = 1,
       .field = "label",
       .named = {"line 1 of ", "b.jsonl", "has no field 'label'"},
       .kind = ErrorKind::kInvalidArgument},
  };
  for (const ChangedSchema& row : rows) {
    expect_named(row, {write("a.jsonl", row.a), write("b.jsonl", row.b)});
  }
}

TEST_F(ChangedSchemaTest, LinesOfOtherFieldsAndNullsAreGood) {
  const auto a = write("a.jsonl", "{\"x\":1,\"y\":null}\n{\"x\":null}\n");
  const auto b = write("b.jsonl", "{\"x\":2.5,\"z\":\"\"}\n{\"y\":\"\"}\n");
  const auto records = open_records({a, b});
  EXPECT_EQ(text_of(records->read(2, "x")), "2.5");
  EXPECT_EQ(text_of(records->read(1, "x")), "null");
}

TEST_F(ChangedSchemaTest, FieldsThatNobodyReadMayChange) {
  const auto a = write("a.jsonl", "{\"text\":\"x\",\"id\":17}\n");
  const auto b = write("b.jsonl", "{\"text\":\"y\",\"id\":\"a17\"}\n");
  EXPECT_EQ(text_of(open_records({a, b})->read(1, "text")), "y");
}

TEST_F(ChangedSchemaTest, RowsNameShardLineAndColumns) {
  const ChangedSchema rows[] = {
      {.name = "another name",
       .a = "text,label\nx,1\n",
       .b = "text,class\nx,1\n",
       .named = {"b.csv", "line 1", "'text', 'class'; expected those of", "a.csv", "'label'"}},
      {.name = "vanished",
       .a = "text,label\nx,1\n",
       .b = "text\nx\n",
       .named = {"b.csv", "line 1", "the columns are 'text'; expected"}},
      {.name = "vanished from a row",
       .a = "text,label\nx,1\n",
       .b = "text,label\nx,1\ny\n",
       .named = {"b.csv", "line 3", "1 columns; expected 2: 'text', 'label'"}},
  };
  for (const ChangedSchema& row : rows) {
    expect_named(row, {write("a.csv", row.a), write("b.csv", row.b)});
  }
}

TEST_F(ChangedSchemaTest, ExamplesNameShardRecordAndField) {
  const auto file = [](const std::vector<TfFeatures>& examples) {
    std::string bytes;
    for (const TfFeatures& example : examples) bytes += tf_record(tf_example(example));
    return bytes;
  };
  const TfFeatures good = {{"label", std::vector<std::int64_t>{1}},
                           {"text", std::vector<std::string>{"x"}}};
  const TfFeatures changed = {{"label", std::vector<float>{1}}};
  const ChangedSchema rows[] = {
      {.name = "integers that become floats",
       .a = file({good}),
       .b = file({changed, good}),
       .record = 1,
       .field = "label",
       .named = {"record 0 of ", "b.tfrecord", "'label' is floats; expected integers",
                 "record 0 of", "a.tfrecord"}},
      {.name = "within the shard, where it is read",
       .a = file({good}),
       .b = file({good, changed}),
       .record = 2,
       .field = "label",
       .named = {"record 1 of ", "b.tfrecord", "'label' is floats; expected integers"}},
      {.name = "vanished",
       .a = file({good}),
       .b = file({{good[1]}}),
       .record = 1,
       .field = "label",
       .named = {"record 0 of ", "b.tfrecord", "has no field 'label'"},
       .kind = ErrorKind::kInvalidArgument},
  };
  for (const ChangedSchema& row : rows) {
    expect_named(row, {write("a.tfrecord", row.a), write("b.tfrecord", row.b)});
  }
}

/// Where a shard begins with damage nothing is learned: a budget of damaged samples passes over it.
TEST_F(ChangedSchemaTest, DamageIsNoSchema) {
  const std::string whole = tf_record(tf_example({{"label", std::vector<std::int64_t>{1}}}));
  const auto records =
      open_records({write("a.tfrecord", tf_record("x") + whole), write("b.tfrecord", whole)});
  EXPECT_EQ(records->read(1, "label").size(), 8U);
  EXPECT_EQ(error_of([&] { records->read(0, "label"); }).kind(), ErrorKind::kCorruptData);
}

TEST_F(ChangedSchemaTest, TarNamesShardRecordAndField) {
  write_tar(folder / "a.tar", {{"1.txt", "x"}, {"1.cls", "0"}});
  write_tar(folder / "b.tar", {{"2.txt", "x"}, {"2.cls", "0"}, {"3.txt", "x"}});
  expect_named({.name = "vanished",
                .record = 2,
                .field = "cls",
                .named = {"record '3' of ", "b.tar", "has no field 'cls'"},
                .kind = ErrorKind::kInvalidArgument},
               {folder / "a.tar", folder / "b.tar"});
}

TEST_F(ChangedSchemaTest, MdsNamesShardAndColumn) {
  const MdsColumn text = {"text", "str"}, label = {"label", "int", 8};
  const auto refused = [&](const std::vector<MdsColumn>& second, std::vector<std::string> named) {
    named.push_back("shards[1]");
    write("index.json",
          mds_index({mds_entry("a.mds", {text, label}, 1, 20), mds_entry("b.mds", second, 1, 20)}));
    expect_named({.name = named[0], .named = named}, {folder});
  };
  refused({text, {"label", "str"}}, {"column 1 is 'label' as str;", "'label' as int of 8 bytes"});
  refused({text, {"class", "int", 8}}, {"column 1 is 'class' as int", "expected", "'label'"});
  refused({text}, {"column 1 is none; expected", "'label' as int"});
  refused({text, label, label}, {"column 2 is 'label' as int of 8 bytes; expected", "none"});
}

/// Parquet and Arrow, as pyarrow wrote them (tests/data/tables/make.py).
TEST_F(ChangedSchemaTest, TablesNameShardAndColumn) {
  const std::string tables = "tests/data/tables/";
  try {
    open_records({tables + "plain.parquet"});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnavailable) throw;
    GTEST_SKIP() << "no pyarrow: " << error.message();
  }
  expect_named({.name = "another type",
                .named = {"snappy.parquet' has column 'id' of int64", "other.parquet", "of int32"}},
               {tables + "other.parquet", tables + "snappy.parquet"});
  expect_named({.name = "other columns", .named = {"plain.parquet' has column 'blob' of binary"}},
               {tables + "snappy.parquet", tables + "plain.parquet"});
  expect_named({.name = "Arrow", .named = {"other.arrow' has column 'id' of int32", "file.arrow"}},
               {tables + "file.arrow", tables + "other.arrow"});
}

}  // namespace
}  // namespace trireme::data
