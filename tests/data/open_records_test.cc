#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"
#include "tests/data/tar_file.h"
#include "tests/data/tfrecord_file.h"
#include "trireme/data.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class OpenRecordsTest : public FolderFiles {
 protected:
  static std::string complaint(const std::vector<fs::path>& paths,
                               const RecordFileOptions& options = {}) {
    const Error error = error_of([&] { open_records(paths, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    return error.message();
  }
};

TEST_F(OpenRecordsTest, TheNameTellsTheForm) {
  const std::string json = "{\"a\": 1}\n";
  const std::string record = tf_record(tf_example({{"a", std::vector<std::string>{"1"}}}));
  write_tar(folder / "x.tar", {{"0.a", "1"}});
  for (const fs::path& path : {folder / "x.tar", write("x.jsonl", json), write("x.NDJSON", json),
                               write("x.jsonl.gz", gzip(json)), write("x.jsonl.zst", zstd(json)),
                               write("x.csv", "a,b\n1,2\n"), write("x.csv.gz", gzip("a\n1\n")),
                               write("x.tsv", "a\tb\n1\t2\n"), write("x.tfrecord", record),
                               write("x.tfrecords.zst", zstd(record))}) {
    const auto records = open_records({path});
    ASSERT_EQ(records->num_records(), 1) << path;
    EXPECT_EQ(text_of(records->read(0, "a")), "1") << path;
  }
}

TEST_F(OpenRecordsTest, AFolderIsWhatLiesInIt) {
  write("images/cat/a.jpg", "a");
  EXPECT_THAT(open_records({folder / "images"})->fields(0), ElementsAre("jpg", "cls"));
  write("lines/b.jsonl", "{\"a\": 2}\n");
  write("lines/a.jsonl.gz", gzip("{\"a\": 1}\n"));
  write("lines/README.md", "no records");
  write("lines/index.json", "no MDS: something is there that is read by its name");
  const auto lines = open_records({folder / "lines"});
  ASSERT_EQ(lines->num_records(), 2);
  EXPECT_EQ(text_of(lines->read(0, "a")), "1") << "sorted by name";
  write("mds/index.json", R"({"version": 2, "shards": []})");
  EXPECT_EQ(error_of([&] { open_records({folder / "mds"}); }).kind(), ErrorKind::kCorruptData);
  write("lines/c.csv", "a\n1\n");
  EXPECT_THAT(complaint({folder / "lines"}), HasSubstr("are of different forms"));
}

TEST_F(OpenRecordsTest, AFormMayBeGiven) {
  const auto path = write("part-00000", "1;\"2\n");
  const auto records = open_records(
      {path},
      {.form = RecordForm::kCsv, .columns = {"a", "b"}, .separator = ';', .has_quotes = false});
  EXPECT_EQ(text_of(records->read(0, "b")), "\"2");
  write("lines/part-00000", "{\"a\": 1}");
  write("lines/_SUCCESS", "{}");
  EXPECT_EQ(open_records({folder / "lines"}, {.form = RecordForm::kJsonLines})->num_records(), 2);
  EXPECT_THAT(complaint({path}, {.form = RecordForm::kMds}), HasSubstr("expected a folder"));
  fs::create_directory(folder / "empty");
  EXPECT_THAT(complaint({folder / "empty"}, {.form = RecordForm::kTar}), HasSubstr("has no files"));
  write("sounds/a/x.wav", "");
  EXPECT_EQ(open_records({folder / "sounds"}, {.suffixes = {".wav"}, .classes = {"b", "a"}})
                ->num_records(),
            1);
}

TEST_F(OpenRecordsTest, WhatIsNotKnownIsRefusedWithWhatIs) {
  EXPECT_THAT(complaint({}), AllOf(HasSubstr("none are named"), HasSubstr(".tar .jsonl")));
  EXPECT_THAT(complaint({write("x.hdf5", "HDF")}),
              AllOf(HasSubstr("x.hdf5' is of no known form"), HasSubstr(".csv .tsv .tfrecord"),
                    HasSubstr("index.json (MDS)"), HasSubstr("RecordFileOptions::form")));
  const auto csv = write("x.csv", "a\n1\n"), lines = write("x.jsonl", "{}");
  EXPECT_THAT(complaint({csv, lines}), HasSubstr("x.csv' and '"));
  EXPECT_THAT(complaint({csv, folder}), HasSubstr("one folder, or files, can be named"));
  const Error missing = error_of([&] { open_records({folder / "nothing"}); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("nothing"));
}

}  // namespace
}  // namespace trireme::data
