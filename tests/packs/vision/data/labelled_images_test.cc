#include "packs/vision/data/labelled_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/folder_files.h"
#include "tests/data/tar_file.h"
#include "tests/data/tfrecord_file.h"

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
  EXPECT_THAT(open_images({folder}, {.classes = {"dog", "cow", "cat"}}).labels,
              ElementsAre(0, 0, 2));
}

TEST_F(LabelledImagesTest, OfShardsTheNumbersAreTheClasses) {
  const auto b = shard("shards/b.tar", {{"1.cls", " 0"}, {"1.json", "{}"}, {"1.png", ""}});
  const auto a = shard("shards/a.tar", {{"0.jpg", ""}, {"0.cls", "1\n"}});
  const LabelledImages images = open_images({folder / "shards"});
  EXPECT_THAT(images.classes, ElementsAre("0", "1"));
  EXPECT_THAT(images.labels, ElementsAre(1, 0)) << "sorted by name";
  EXPECT_THAT(images.image_fields, ElementsAre("jpg", "png"));
  EXPECT_THAT(open_images({b, a}).labels, ElementsAre(0, 1));
}

TEST_F(LabelledImagesTest, NumbersHaveNoGaps) {
  const auto shard_of = [&](const std::vector<std::string>& labels) {
    std::vector<data::TarMember> members;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      members.push_back({std::to_string(i) + ".jpg", ""});
      members.push_back({std::to_string(i) + ".cls", labels[i]});
    }
    return shard("x.tar", members);
  };
  EXPECT_THAT(open_images({shard_of({"2", "0", "1"})}).classes, ElementsAre("0", "1", "2"));
  EXPECT_THAT(open_images({shard_of({"2", "1"})}).classes, ElementsAre("0", "1", "2"))
      << "counted from 1";
  const auto stray = shard_of({"0", "1", "1", "16777215", "2"});
  const Error error = error_of([&] { open_images({stray}); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("record '3' of '"), HasSubstr("class 16777215"),
                                     HasSubstr("no record has class 3: 1 of 5 records")));
  EXPECT_THAT(error_of([&] { open_images({shard_of({"0", "2", "3"})}); }).message(),
              AllOf(HasSubstr("record '1' of '"), HasSubstr("class 1: 2 of 3")));
  EXPECT_THAT(error_of([&] { open_images({shard_of({"2"})}); }).message(), HasSubstr("class 1: 1"));
  EXPECT_THAT(open_images({shard_of({"0", "3"})}, {.classes = {"a", "b", "c", "d"}}).labels,
              ElementsAre(0, 3));
}

TEST_F(LabelledImagesTest, ClassesMayBeListedInAFile) {
  EXPECT_THAT(read_class_names(write("x", "n01440764 tench\r\ngold fish\n")),
              ElementsAre("n01440764 tench", "gold fish"));
  EXPECT_THAT(error_of([&] { read_class_names(write("x", "tench\n\ncat\n")); }).message(),
              HasSubstr("no name in line 2"));
  EXPECT_THAT(error_of([&] { read_class_names(write("x", "")); }).message(), HasSubstr("is empty"));
  EXPECT_EQ(error_of([&] { read_class_names(folder / "none"); }).kind(), ErrorKind::kIo);
}

TEST_F(LabelledImagesTest, ARecordWithoutImageOrClassIsNamed) {
  const auto complaint = [&](const std::vector<data::TarMember>& members) {
    const auto path = shard("x.tar", members);
    const Error error = error_of([&] { open_images({path}, {.classes = {"a", "b"}}); });
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
              AllOf(HasSubstr("has class 2 as `cls`"), HasSubstr("there are 2")));
}

TEST_F(LabelledImagesTest, TheClassMayStandInAJsonMember) {
  const auto path = shard("x.tar", {{"0.jpg", ""},
                                    {"0.json", R"({"label": 2, "name": "cow"})"},
                                    {"1.png", ""},
                                    {"1.json", R"({"name": "dog", "label": "1"})"}});
  const LabelledImages images = open_images({path}, {.label_field = "json", .label_key = "label"});
  EXPECT_THAT(images.labels, ElementsAre(2, 1));
  EXPECT_THAT(images.classes, ElementsAre("0", "1", "2"));
  EXPECT_THAT(images.image_fields, ElementsAre("jpg", "png"));
  const ImageFileOptions by_name{
      .classes = {"cow", "dog"}, .label_field = "json", .label_key = "name"};
  EXPECT_THAT(open_images({path}, by_name).labels, ElementsAre(0, 1));
}

TEST_F(LabelledImagesTest, AJsonMemberWithoutAClassIsNamed) {
  const auto complaint = [&](const char* json) {
    const auto path = shard("x.tar", {{"7.jpg", ""}, {"7.json", json}});
    const Error error = error_of([&] {
      open_images({path}, {.classes = {"a", "b"}, .label_field = "json", .label_key = "label"});
    });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr("record '7' of '"));
    return error.message();
  };
  EXPECT_THAT(complaint("{\"label\": "), HasSubstr("json of record"));
  EXPECT_THAT(complaint("[1]"), HasSubstr("a JSON object with 'label' as `json`"));
  EXPECT_THAT(complaint("{\"class\": 1}"), HasSubstr("a JSON object with 'label' as `json`"));
  EXPECT_THAT(complaint("{\"label\": 2}"), HasSubstr("has class 2 as `json`; there are 2"));
  EXPECT_THAT(complaint("{\"label\": 0.5}"),
              HasSubstr("has class '0.5' as `json`, which is no number"));
  EXPECT_THAT(complaint("{\"label\": \"c\"}"), HasSubstr("no name of the 2 classes"));
}

TEST_F(LabelledImagesTest, OfTfrecordTheClassIsEightBytes) {
  const auto path =
      write("x.tfrecord",
            data::tf_record(data::tf_example({{"image/encoded", std::vector<std::string>{"jpeg"}},
                                              {"image/class/label", std::vector<std::int64_t>{1}},
                                              {"image/height", std::vector<std::int64_t>{1, 2}}})));
  ImageFileOptions options{.image_field = "image/encoded",
                           .label_field = "image/class/label",
                           .label_form = LabelForm::kI64};
  const LabelledImages images = open_images({path}, options);
  EXPECT_THAT(images.labels, ElementsAre(1));
  EXPECT_THAT(images.image_fields, ElementsAre("image/encoded"));
  options.label_field = "image/height";
  EXPECT_THAT(error_of([&] { open_images({path}, options); }).message(),
              AllOf(HasSubstr("record 0 of '"),
                    HasSubstr("a class of 16 bytes as `image/height`; expected 8")));
}

TEST_F(LabelledImagesTest, PathsThatAreNoImagesAreRefused) {
  write("cat/a.jpg", "");
  EXPECT_THAT(error_of([] { open_images({}); }).message(), HasSubstr("none are named"));
  EXPECT_THAT(error_of([&] { open_images({folder, folder}); }).message(),
              HasSubstr("one folder, or files"));
  EXPECT_EQ(error_of([&] { open_images({folder / "nothing"}); }).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme::vision
