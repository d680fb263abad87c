#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"
#include "tests/data/tar_file.h"
#include "tests/data/tfrecord_file.h"
#include "tests/remote/store_server.h"
#include "trireme/data.h"
#include "trireme/data/table_file.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The same files in a folder and in a store, which the environment names.
class RemoteRecordsTest : public FolderFiles {
 protected:
  void SetUp() override {
    if (!server.is_there()) GTEST_SKIP() << "no Python to run the store";
    ::setenv("AWS_ENDPOINT_URL", server.url().c_str(), 1);
    ::setenv("TRIREME_CACHE_DIR", (folder / "cache").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("AWS_ENDPOINT_URL");
    ::unsetenv("TRIREME_CACHE_DIR");
  }

  /// Where an object of bucket `b` is kept.
  fs::path here(const std::string& key) const { return folder / "objects" / "b" / key; }

  static void expect_same(const RecordSource& found, const RecordSource& local) {
    ASSERT_EQ(found.num_records(), local.num_records());
    EXPECT_EQ(found.identity(), local.identity());
    for (std::int64_t i = 0; i < local.num_records(); ++i) {
      ASSERT_EQ(found.fields(i), local.fields(i));
      for (const std::string& field : local.fields(i)) {
        EXPECT_EQ(found.read(i, field), local.read(i, field)) << local.name(i) << " " << field;
      }
    }
  }

  static std::string complaint(const fs::path& path, const RecordFileOptions& options = {}) {
    const Error error = error_of([&] { open_records({path}, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    return error.message();
  }

  /// Two records in each of two files of every form, all in one folder each.
  void write_all() const {
    for (const std::string n : {"1", "2"}) {
      fs::create_directories(here("tar"));
      write_tar(here("tar/" + n + ".tar"), {{"a" + n + ".txt", "a" + n}, {"b" + n + ".txt", "b"}});
      server.put("b/lines/" + n + ".jsonl", "{\"a\": " + n + "}\n{\"a\": 3}\n");
      server.put("b/packed/" + n + ".jsonl.gz", gzip("{\"a\": " + n + "}\n{\"a\": 3}\n"));
      server.put("b/rows/" + n + ".csv", "a,b\n" + n + ",2\n3,4\n");
      const std::string record = tf_record(tf_example({{"a", std::vector<std::string>{n}}}));
      server.put("b/tfrecord/" + n + ".tfrecord", record + record);
    }
    server.put("b/mds/0.mds", std::string("\1\0\0\0\x0c\0\0\0\x0f\0\0\0abc", 15));
    server.put("b/mds/index.json",
               R"({"version": 2, "shards": [{"version": 2, "format": "mds", "samples": 1,
      "compression": null, "column_names": ["a"], "column_encodings": ["bytes"], "column_sizes": [3],
      "raw_data": {"basename": "0.mds", "bytes": 15}, "zip_data": null}]})");
  }

  const test::StoreServer server{folder};
};

TEST_F(RemoteRecordsTest, AFolderOfAStoreIsReadAsOneHere) {
  write_all();
  server.fail("* status 3 503");
  server.fail("* cut 3 7");
  for (const std::string name : {"tar", "lines", "packed", "rows", "tfrecord", "mds"}) {
    expect_same(*open_records({"s3://b/" + name}), *open_records({here(name)}));
    expect_same(*open_records({"s3://b/" + name + "/"}), *open_records({here(name)}));
  }
}

TEST_F(RemoteRecordsTest, TablesAreReadFromTheCache) {
  for (const std::string name : {"other.parquet", "images.parquet", "file.arrow"}) {
    const fs::path local = fs::path("tests/data/tables") / name;
    std::ifstream file(local, std::ios::binary);
    server.put("b/" + name, std::string(std::istreambuf_iterator<char>(file), {}));
    try {
      load_table_library();
    } catch (const Error& error) {
      GTEST_SKIP() << "no pyarrow: " << error.message();
    }
    const auto found = open_records({"s3://b/" + name}), here = open_records({local});
    if (name.ends_with(".parquet")) expect_same(*found, *here);
    EXPECT_EQ(found->identity(), here->identity());
    const std::string field = here->fields(0).back() == "label" ? "label" : "id";
    EXPECT_EQ(found->read(1, field), here->read(1, field));
    EXPECT_THAT(found->name(1), HasSubstr("s3://b/" + name));
  }
}

TEST_F(RemoteRecordsTest, FilesMayLieInSeveralPlaces) {
  write_all();
  expect_same(*open_records({server.url() + "/b/lines/1.jsonl?key=hush", here("lines/2.jsonl")}),
              *open_records({here("lines")}));
  expect_same(*open_records({server.url() + "/b/mds"}), *open_records({here("mds")}));
  server.put("b/part-0", "1;2\n");
  EXPECT_EQ(open_records({"s3://b/part-0"},
                         {.form = RecordForm::kCsv, .columns = {"a", "b"}, .separator = ';'})
                ->num_records(),
            1);
}

TEST_F(RemoteRecordsTest, WhatVanishesIsNamedWithRecordAndField) {
  write_all();
  const auto records = open_records({server.url() + "/b/lines/1.jsonl?key=hush"});
  for (const auto& entry : fs::directory_iterator(folder / "cache")) fs::remove(entry.path());
  fs::remove(here("lines/1.jsonl"));
  const Error error = error_of([&] { records->read(1, "a"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("line 2 of http://"), HasSubstr("1.jsonl, field 'a': "),
                    HasSubstr("404"), Not(HasSubstr("hush"))));
  const auto local = open_records({here("rows/1.csv")});
  fs::remove(here("rows/1.csv"));
  EXPECT_THAT(error_of([&] { local->read(1, "b"); }).message(),
              AllOf(HasSubstr("1.csv"), HasSubstr("field 'b': cannot open")));
}

TEST_F(RemoteRecordsTest, WhatIsDamagedIsNamedByItsPlaceThere) {
  server.put("b/x.jsonl.gz", gzip("{\"a\": 1}\n").substr(0, 12));
  const Error error = error_of([&] { open_records({"s3://b/x.jsonl.gz"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("'s3://b/x.jsonl.gz' is cut off"));
}

TEST_F(RemoteRecordsTest, WhatCannotBeReadFromElsewhereIsRefused) {
  EXPECT_THAT(complaint(server.url() + "/b/", {.form = RecordForm::kTar}),
              HasSubstr("a URL cannot be listed; name the files"));
  EXPECT_THAT(complaint("s3://b/nothing/", {.form = RecordForm::kTar}), HasSubstr("has no files"));
  EXPECT_THAT(complaint("s3://b/images/", {.form = RecordForm::kFolder}),
              HasSubstr("put its files into tar shards"));
  EXPECT_THAT(error_of([&] { open_records({"s3://b/nothing"}); }).message(),
              HasSubstr("s3://b/nothing/index.json' is not there"));
}

}  // namespace
}  // namespace trireme::data
