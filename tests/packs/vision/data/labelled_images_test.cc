#include "packs/vision/data/labelled_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/folder_files.h"
#include "tests/data/tar_file.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;
using data::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class LabelledImagesTest : public data::FolderFiles {
 protected:
  fs::path shard(const std::string& name, const std::vector<data::TarMember>& members) const {
    fs::create_directories((folder / name).parent_path());
    data::write_tar(folder / name, members);
    return folder / name;
  }
};

TEST_F(LabelledImagesTest, OfAFolderTheSubfoldersAreTheClasses) {
  write("cat/a.jpg", "");
  write("dog/b.png", "");
  write("dog/c.jpeg", "");
  const LabelledImages images = open_images({folder});
  EXPECT_THAT(images.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(images.labels, ElementsAre(0, 1, 1));
  EXPECT_THAT(images.image_fields, ElementsAre("jpg", "png", "jpeg"));
  EXPECT_THAT(open_images({folder}, {"dog", "cow", "cat"}).labels, ElementsAre(0, 0, 2));
}

TEST_F(LabelledImagesTest, OfShardsTheNumbersAreTheClasses) {
  const auto b = shard("shards/b.tar", {{"1.cls", " 0"}, {"1.json", "{}"}, {"1.png", ""}});
  const auto a = shard("shards/a.tar", {{"0.jpg", ""}, {"0.cls", "3\n"}});
  const LabelledImages images = open_images({folder / "shards"});
  EXPECT_THAT(images.classes, ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(images.labels, ElementsAre(3, 0)) << "sorted by name";
  EXPECT_THAT(images.image_fields, ElementsAre("jpg", "png"));
  EXPECT_THAT(open_images({b, a}).labels, ElementsAre(0, 3));
}

TEST_F(LabelledImagesTest, ARecordWithoutImageOrClassIsNamed) {
  const auto complaint = [&](const std::vector<data::TarMember>& members) {
    const auto path = shard("x.tar", members);
    const Error error = error_of([&] { open_images({path}, {"a", "b"}); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr("record '7' of '"));
    return error.message();
  };
  EXPECT_THAT(complaint({{"7.cls", "0"}}), HasSubstr("has no image"));
  EXPECT_THAT(complaint({{"7.jpg", "0"}}), HasSubstr("has no class"));
  for (const char* label : {"", "one", "1.5", "-1", "1 2", "99999999999"}) {
    EXPECT_THAT(complaint({{"7.jpg", ""}, {"7.cls", label}}), HasSubstr("no number")) << label;
  }
  EXPECT_THAT(complaint({{"7.jpg", ""}, {"7.cls", "2"}}),
              AllOf(HasSubstr("has class 2"), HasSubstr("there are 2")));
}

TEST_F(LabelledImagesTest, PathsThatAreNoImagesAreRefused) {
  write("cat/a.jpg", "");
  EXPECT_THAT(error_of([] { open_images({}); }).message(), HasSubstr("no images are named"));
  EXPECT_THAT(error_of([&] { open_images({folder, folder}); }).message(),
              HasSubstr("one folder, or tar shards"));
  EXPECT_EQ(error_of([&] { open_images({folder / "nothing"}); }).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme::vision
