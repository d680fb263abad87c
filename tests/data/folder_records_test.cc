#include "trireme/data/folder_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/folder_files.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class FolderRecordsTest : public FolderFiles {
 protected:
  /// Two classes, three images, and what is left out.
  void write_flowers() const {
    write("tulips/b.JPG", "tulip b");
    write("tulips/a.png", "tulip a");
    write("daisy/deep/c.jpeg", "daisy c");
    write("daisy/notes.txt", "no image");
    write("daisy/.hidden.jpg", "hidden");
    write(".cache/x.jpg", "hidden too");
    write("README.md", "no class");
  }
};

TEST_F(FolderRecordsTest, AFileIsARecordAndItsFolderTheClass) {
  write_flowers();
  const FolderRecords records(folder);
  EXPECT_THAT(records.classes(), ElementsAre("daisy", "tulips"));
  ASSERT_EQ(records.num_records(), 3);
  EXPECT_THAT(records.fields(0), ElementsAre("jpeg", "cls"));
  EXPECT_THAT(records.fields(1), ElementsAre("png", "cls"));
  EXPECT_THAT(records.fields(2), ElementsAre("jpg", "cls"));
  EXPECT_EQ(text_of(records.read(0, "jpeg")), "daisy c");
  EXPECT_EQ(text_of(records.read(1, "png")), "tulip a");
  EXPECT_EQ(text_of(records.read(2, "jpg")), "tulip b");
  EXPECT_EQ(text_of(records.read(0, "cls")), "0");
  EXPECT_EQ(text_of(records.read(2, "cls")), "1");
  EXPECT_THAT(records.name(0), HasSubstr("daisy/deep/c.jpeg'"));
}

TEST_F(FolderRecordsTest, NamedClassesNumberTheFolders) {
  write_flowers();
  const FolderRecords records(folder, {.classes = {"tulips", "roses", "daisy"}});
  EXPECT_EQ(text_of(records.read(0, "cls")), "0");
  EXPECT_EQ(text_of(records.read(0, "png")), "tulip a");
  EXPECT_EQ(text_of(records.read(2, "cls")), "2");
}

TEST_F(FolderRecordsTest, IdentityTellsNamesSizesAndClasses) {
  write_flowers();
  const std::string identity = FolderRecords(folder).identity();
  EXPECT_EQ(identity, FolderRecords(folder).identity());
  EXPECT_NE(identity, FolderRecords(folder, {.classes = {"tulips", "daisy"}}).identity());
  write("tulips/a.png", "longer than before");
  const std::string longer = FolderRecords(folder).identity();
  EXPECT_NE(identity, longer);
  write("tulips/c.jpg", "");
  EXPECT_NE(longer, FolderRecords(folder).identity());
}

TEST_F(FolderRecordsTest, WhatIsNoSuchFolderIsNamed) {
  const auto complaint = [&](FolderRecordOptions options = {}) {
    const Error error = error_of([&] { const FolderRecords records(folder, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(complaint(), HasSubstr("has no folders"));
  write("daisy/notes.txt", "");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("of class 'daisy'"), HasSubstr(".jpg .jpeg .png")));
  write("daisy/a.jpg", "");
  EXPECT_THAT(complaint({.classes = {"roses"}}), HasSubstr("'daisy', which is not among the 1"));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(complaint(), HasSubstr("is not there"));
}

TEST_F(FolderRecordsTest, WhatCannotBeReadIsNamed) {
  write_flowers();
  const FolderRecords records(folder);
  EXPECT_THAT(error_of([&] { records.read(0, "png"); }).message(),
              AllOf(HasSubstr("c.jpeg'"), HasSubstr("no field 'png'")));
  EXPECT_THAT(error_of([&] { records.read(3, "png"); }).message(), HasSubstr("no record 3"));
  EXPECT_THAT(error_of([&] { records.fields(-1); }).message(), HasSubstr("no record -1"));
  std::filesystem::remove(folder / "tulips/a.png");
  const Error gone = error_of([&] { records.read(1, "png"); });
  EXPECT_EQ(gone.kind(), ErrorKind::kIo);
  EXPECT_THAT(gone.message(), HasSubstr("tulips/a.png"));
}

}  // namespace
}  // namespace trireme::data
