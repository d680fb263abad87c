#include "trireme/data/tar_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/folder_files.h"
#include "tests/data/tar_file.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TarRecordsTest : public FolderFiles {
 protected:
  fs::path shard(const std::string& name, const std::vector<TarMember>& members,
                 const char* format = "pax") const {
    write_tar(folder / name, members, format);
    return folder / name;
  }

  static std::string complaint(const std::vector<fs::path>& shards) {
    const Error error = error_of([&] { const TarRecords records(shards); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    return error.message();
  }
};

TEST_F(TarRecordsTest, FilesOfOneNameAreARecord) {
  const TarRecords records({shard("0.tar", {{"train/", ""},
                                            {"train/0.jpg", std::string(3000, 'a')},
                                            {"train/0.CLS", "7"},
                                            {"train/0.seg.png", "mask"},
                                            {"train/README", "no dot"},
                                            {"train/.hidden.jpg", "hidden"},
                                            {"train/1.cls", "8"},
                                            {"train/1.jpg", ""}}),
                            shard("1.tar", {{"train/1.jpg", "of another shard"}})});
  ASSERT_EQ(records.num_records(), 3);
  EXPECT_THAT(records.fields(0), ElementsAre("jpg", "cls", "seg.png"));
  EXPECT_THAT(records.fields(1), ElementsAre("cls", "jpg"));
  EXPECT_EQ(text_of(records.read(0, "jpg")), std::string(3000, 'a'));
  EXPECT_EQ(text_of(records.read(0, "cls")), "7");
  EXPECT_EQ(text_of(records.read(0, "seg.png")), "mask");
  EXPECT_EQ(text_of(records.read(1, "jpg")), "");
  EXPECT_EQ(text_of(records.read(1, "cls")), "8");
  EXPECT_EQ(text_of(records.read(2, "jpg")), "of another shard");
  EXPECT_THAT(records.name(2), AllOf(HasSubstr("record 'train/1'"), HasSubstr("1.tar'")));
}

/// Long names and names beyond ASCII have headers of their own in front.
TEST_F(TarRecordsTest, EveryFormOfTarIsRead) {
  const std::string longest = std::string(120, 'f') + "/" + std::string(90, 'n');
  for (const char* format : {"ustar", "pax", "gnutar"}) {
    const TarRecords records({shard("x.tar",
                                    {{"a.txt", "first"},
                                     {longest + ".txt", "long"},
                                     {"\xC3\xA9t\xC3\xA9.txt", "summer"},
                                     {"b.txt", "last"}},
                                    format)});
    ASSERT_EQ(records.num_records(), 4) << format;
    EXPECT_EQ(text_of(records.read(0, "txt")), "first") << format;
    EXPECT_EQ(text_of(records.read(1, "txt")), "long") << format;
    EXPECT_THAT(records.name(1), HasSubstr("'" + longest + "'")) << format;
    EXPECT_EQ(text_of(records.read(2, "txt")), "summer") << format;
    EXPECT_EQ(text_of(records.read(3, "txt")), "last") << format;
  }
}

TEST_F(TarRecordsTest, IdentityTellsNamesAndSizesButNoFolders) {
  const fs::path a = shard("a.tar", {{"0.cls", "1"}, {"1.cls", "2"}});
  const std::string identity = TarRecords({a}).identity();
  EXPECT_EQ(identity, TarRecords({shard("b.tar", {{"0.cls", "1"}, {"1.cls", "2"}})}).identity());
  EXPECT_NE(identity, TarRecords({shard("c.tar", {{"0.cls", "1"}, {"2.cls", "2"}})}).identity());
  EXPECT_NE(identity, TarRecords({shard("d.tar", {{"0.cls", "11"}, {"1.cls", "2"}})}).identity());
  EXPECT_NE(identity, TarRecords({a, a}).identity());
}

TEST_F(TarRecordsTest, AShardThatIsCutOffIsRefusedWhereverItIsCut) {
  const fs::path whole = shard("whole.tar", {{"0.jpg", std::string(700, 'a')}, {"0.cls", "1"}});
  const TarRecords records({whole});
  const auto last = static_cast<std::uintmax_t>(512 + 1024 + 512 + 512);  // both, to their ends
  ASSERT_GE(fs::file_size(whole), last + 1024);
  for (std::uintmax_t bytes = 1; bytes <= last; bytes += bytes % 512 == 0 ? 37 : 475) {
    fs::copy_file(whole, folder / "cut.tar", fs::copy_options::overwrite_existing);
    fs::resize_file(folder / "cut.tar", bytes);
    EXPECT_THAT(complaint({folder / "cut.tar"}), HasSubstr("cut.tar' ")) << bytes;
  }
  fs::resize_file(folder / "cut.tar", 600);
  EXPECT_THAT(complaint({folder / "cut.tar"}),
              AllOf(HasSubstr("is cut off: '0.jpg' ends at byte 1212"), HasSubstr("at 600")));
}

TEST_F(TarRecordsTest, WhatIsNoShardIsNamed) {
  EXPECT_THAT(complaint({write("empty.tar", "")}), HasSubstr("empty.tar' is empty"));
  EXPECT_THAT(complaint({write("text.tar", std::string(2000, 'x'))}), HasSubstr("text.tar' "));
  EXPECT_THAT(complaint({shard("bare.tar", {})}), HasSubstr("bare.tar' has no records"));
  EXPECT_THAT(complaint({shard("twice.tar", {{"0.jpg", "a"}, {"0.JPG", "b"}})}),
              HasSubstr("two files '0.JPG'"));
  write_tar(folder / "packed.tar.gz", {{"0.jpg", "a"}}, "pax", "gzip");
  EXPECT_THAT(complaint({folder / "packed.tar.gz"}), HasSubstr("not compressed"));
  EXPECT_EQ(error_of([] { const TarRecords records({}); }).kind(), ErrorKind::kInvalidArgument);
  const Error missing = error_of([&] { const TarRecords records({folder / "missing.tar"}); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("missing.tar"));
}

TEST_F(TarRecordsTest, WhatCannotBeReadIsNamed) {
  const fs::path path = shard("0.tar", {{"7.cls", "1"}});
  const TarRecords records({path});
  EXPECT_THAT(error_of([&] { records.read(0, "jpg"); }).message(),
              AllOf(HasSubstr("record '7' of '"), HasSubstr("no field 'jpg'")));
  EXPECT_THAT(error_of([&] { records.read(1, "cls"); }).message(), HasSubstr("no record 1"));
  fs::resize_file(path, 600);
  const Error shorter = error_of([&] { records.read(0, "cls"); });
  EXPECT_EQ(shorter.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(shorter.message(), HasSubstr("has changed since it was opened"));
  fs::remove(path);
  const Error gone = error_of([&] { records.read(0, "cls"); });
  EXPECT_EQ(gone.kind(), ErrorKind::kIo);
  EXPECT_THAT(gone.message(), HasSubstr("0.tar"));
}

}  // namespace
}  // namespace trireme::data
