#include "packs/vision/data/boxed_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "packs/vision/data/box_views.h"
#include "tests/data/folder_files.h"
#include "tests/data/mds_file.h"
#include "tests/data/tar_file.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/data/parallel_read.h"

namespace trireme::vision {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kPixels = 16, kPlaces = 4;

struct BoxedSample {
  std::vector<float> image, boxes;
  std::vector<std::int64_t> labels;
  bool operator==(const BoxedSample&) const = default;
};

BoxedSample boxed_sample_of(const BoxedImageSource& source, data::Sample sample) {
  BoxedSample made{.image = std::vector<float>(3 * kPixels * kPixels),
                   .boxes = std::vector<float>(4 * kPlaces),
                   .labels = std::vector<std::int64_t>(kPlaces)};
  const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(made.image)),
                                         std::as_writable_bytes(std::span(made.boxes)),
                                         std::as_writable_bytes(std::span(made.labels))};
  source.read(sample, places);
  return made;
}

class BoxedImageSourceTest : public data::FolderFiles {
 protected:
  /// Image i has i % 4 boxes; categories are 7 (label 1) and 20 (label 2).
  BoxedImageSourceTest() {
    for (int i = 0; i < 12; ++i) {
      const ImageSize size{.height = 40 + i, .width = 60 - i};
      const std::string name = std::to_string(i) + (i % 3 == 0 ? ".png" : ".jpg");
      const auto levels = paint(size, 3, i);
      write(name, i % 3 == 0 ? to_png(size, levels) : to_jpeg(size, levels));
      file["images"].push_back(
          {{"id", 100 - i}, {"file_name", name}, {"height", size.height}, {"width", size.width}});
      for (int b = 0; b < i % 4; ++b) {
        add_box(100 - i, b % 2 == 0 ? 20 : 7, {4.0 * b, 3.0 + b, 10.5, 12.0 + i});
      }
    }
    file["categories"] = {{{"id", 20}, {"name", "b"}}, {{"id", 7}, {"name", "a"}}};
  }

  void add_box(std::int64_t image, int category, const Json& box) {
    file["annotations"].push_back({{"id", 500 + file["annotations"].size()},
                                   {"image_id", image},
                                   {"category_id", category},
                                   {"bbox", box}});
  }

  BoxedImages open() const {
    return open_boxed_images(folder, write("instances.json", compact_text(file)));
  }

  /// What opening says once `change` was made to the file.
  std::string problem(const std::function<void(Json&)>& change,
                      ErrorKind kind = ErrorKind::kCorruptData) {
    const Json before = file;
    change(file);
    const Error error = test::error_of([&] { open(); });
    EXPECT_EQ(error.kind(), kind);
    file = before;
    return error.message();
  }

  static BoxedImageOptions training(std::uint64_t seed = 1) {
    return {.size = kPixels, .random = BoxedViewOptions{}, .max_boxes = kPlaces, .seed = seed};
  }

  Json file = {{"images", Json::array()}, {"annotations", Json::array()}};
};

TEST_F(BoxedImageSourceTest, ReadsWhatTheFileSays) {
  const BoxedImages images = open();
  EXPECT_THAT(images.category_ids, testing::ElementsAre(7, 20));
  EXPECT_THAT(images.category_names, testing::ElementsAre("a", "b"));
  ASSERT_EQ(images.images.size(), 12U);
  EXPECT_EQ(images.most_boxes(), 3);
  EXPECT_EQ(images.images[9].id, 98) << "in order of ids";
  EXPECT_THAT(images.images[9].boxes,
              testing::ElementsAre(LabelledBox{0, 3, 10.5, 17, 2}, LabelledBox{4, 4, 14.5, 18, 1}));
  EXPECT_TRUE(images.images[11].boxes.empty()) << "kept: background alone";
  // An evaluation is the whole image.
  const BoxedImageSource source(images, {.size = kPixels, .max_boxes = kPlaces});
  const BoxedSample sample = boxed_sample_of(source, {.index = 9, .visit = 3});
  EXPECT_THAT(sample.labels, testing::ElementsAre(2, 1, 0, 0));
  const std::vector<float> expected = {0,        3.F / 42, 10.5F / 58, 17.F / 42,
                                       4.F / 58, 4.F / 42, 14.5F / 58, 18.F / 42};
  for (std::size_t i = 0; i < sample.boxes.size(); ++i) {
    EXPECT_NEAR(sample.boxes[i], i < 8 ? expected[i] : 0, 1e-6) << i;
  }
}

/// Two shards with the images in another order have the samples of the folder.
TEST_F(BoxedImageSourceTest, RecordsHaveTheSamplesOfTheirFiles) {
  const BoxedImageSource expected(open(), training());
  const auto member = [&](int i) {
    const std::string suffix = i % 3 == 0 ? ".png" : ".jpg", key = "image" + std::to_string(i);
    return std::vector<data::TarMember>{
        {key + suffix, read_file(folder / (std::to_string(i) + suffix))},
        {key + ".id", std::to_string(100 - i)}};
  };
  for (const int shard : {0, 1}) {
    std::vector<data::TarMember> members;
    for (int i = shard; i < 12; i += 2) std::ranges::copy(member(i), std::back_inserter(members));
    data::write_tar(folder / (std::to_string(shard) + ".tar"), members);
  }
  const std::vector<std::filesystem::path> shards = {folder / "0.tar", folder / "1.tar"};
  const BoxedImageSource source(open_boxed_images(shards, folder / "instances.json"), training());
  ASSERT_EQ(source.num_samples(), 12);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(boxed_sample_of(source, {i, 3}), boxed_sample_of(expected, {i, 3})) << i;
  }
  EXPECT_NE(source.identity(), expected.identity());
  const auto refusal = [&](std::vector<std::filesystem::path> paths) {
    const Error error =
        test::error_of([&] { open_boxed_images(std::move(paths), folder / "instances.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  };
  EXPECT_THAT(refusal({shards[0]}), HasSubstr("image 89 of"));
  EXPECT_THAT(refusal({shards[0], shards[0]}), HasSubstr("has the id 100, as "));
  data::write_tar(folder / "2.tar", {{"a.jpg", "x"}, {"a.id", "7"}});
  EXPECT_THAT(refusal({folder / "2.tar"}), HasSubstr("has the id 7, which is no image's"));
  data::write_tar(folder / "2.tar", {{"a.jpg", "x"}, {"a.id", "x"}});
  EXPECT_THAT(refusal({folder / "2.tar"}), HasSubstr("neither digits nor an i64"));
  data::write_tar(folder / "2.tar", {{"a.jpg", "x"}, {"a.cls", "1"}});
  EXPECT_THAT(refusal({folder / "2.tar"}), HasSubstr("has no `id`"));
}

/// Two MDS shards, whose ids are i64, named by their folder.
TEST_F(BoxedImageSourceTest, AnMdsFolderHasTheSamplesOfItsFiles) {
  const BoxedImageSource expected(open(), training());
  const std::vector<data::MdsColumn> columns = {{"id", "int", 8}, {"jpg", "bytes"}};
  std::vector<Json> entries;
  for (const int shard : {0, 1}) {
    std::vector<data::MdsSample> samples;
    for (int i = 11 - shard; i >= 0; i -= 2) {
      const std::string name = std::to_string(i) + (i % 3 == 0 ? ".png" : ".jpg");
      samples.push_back({data::mds_number(std::int64_t{100 - i}), read_file(folder / name)});
    }
    const std::string content = data::mds_shard(columns, samples);
    const std::string name = std::to_string(shard) + ".mds";
    write("mds/" + name, content);
    entries.push_back(data::mds_entry(name, columns, samples.size(), content.size()));
  }
  write("mds/index.json", data::mds_index(entries));
  const std::vector<std::filesystem::path> mds = {folder / "mds"};
  const BoxedImageSource source(open_boxed_images(mds, folder / "instances.json"), training());
  ASSERT_EQ(source.num_samples(), 12);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(boxed_sample_of(source, {i, 3}), boxed_sample_of(expected, {i, 3})) << i;
  }
  entries.pop_back();
  write("mds/index.json", data::mds_index(entries));
  const Error error = test::error_of([&] { open_boxed_images(mds, folder / "instances.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("is in no record"));
}

TEST_F(BoxedImageSourceTest, ASampleIsAFunctionOfSeedIndexAndVisit) {
  const BoxedImages all = open();
  const BoxedImageSource source(all, training()), same(all, training()), other(all, training(2));
  const auto samples = [](const BoxedImageSource& from, std::int64_t visit) {
    std::vector<BoxedSample> made;
    for (std::int64_t i = 0; i < 12; ++i) made.push_back(boxed_sample_of(from, {i, visit}));
    return made;
  };
  const auto first = samples(source, 1);
  EXPECT_EQ(samples(same, 1), first);
  EXPECT_NE(samples(source, 2), first);
  EXPECT_NE(samples(other, 1), first);
  for (int threads = 2; threads <= 8; threads += 3) {
    std::vector<BoxedSample> made(12);
    const auto one = [&](std::int64_t i) {
      made[static_cast<std::size_t>(i)] = boxed_sample_of(source, {i, 1});
    };
    data::read_each(12, one, kernels::on_threads(threads));
    EXPECT_EQ(made, first) << threads;
  }
}

/// A dark image with one bright box: wherever it is cropped to, it is bright there alone.
TEST_F(BoxedImageSourceTest, BoxesGoWithTheirPixels) {
  const ImageSize size{.height = 60, .width = 80};
  std::vector<std::uint8_t> levels(static_cast<std::size_t>(3 * size.num_pixels()), 0);
  for (std::int64_t y = 20; y < 44; ++y) {
    for (std::int64_t x = 16; x < 48; ++x) {
      std::fill_n(levels.begin() + 3 * (y * size.width + x), 3, std::uint8_t{255});
    }
  }
  write("box.png", to_png(size, levels));
  file["images"] = {{{"id", 1}, {"file_name", "box.png"}, {"height", 60}, {"width", 80}}};
  file["annotations"] = Json::array();
  add_box(1, 7, {16, 20, 32, 24});
  BoxedImageOptions options = training();
  options.mean = {0, 0, 0}, options.deviation = {1, 1, 1};
  const BoxedImageSource source(open(), options);
  std::set<std::vector<float>> views;
  for (std::int64_t visit = 0; visit < 50; ++visit) {
    const BoxedSample sample = boxed_sample_of(source, {.index = 0, .visit = visit});
    EXPECT_THAT(sample.labels, testing::ElementsAre(1, 0, 0, 0));
    views.insert(sample.boxes);
    const auto side = static_cast<float>(kPixels);
    for (std::int64_t i = 0; i < kPixels * kPixels; ++i) {
      const std::int64_t row = i / kPixels;
      const auto x = static_cast<float>(i % kPixels), y = static_cast<float>(row);
      const float* box = sample.boxes.data();
      const float inner = std::min(
          {x - box[0] * side, box[2] * side - x - 1, y - box[1] * side, box[3] * side - y - 1});
      const float level = sample.image[static_cast<std::size_t>(i)];
      if (inner > 1) {
        ASSERT_GT(level, 0.95) << visit << " " << i;
      }
      if (inner < -2) {
        ASSERT_LT(level, 0.05) << visit << " " << i;
      }
    }
  }
  EXPECT_GT(views.size(), 20U);
}

TEST_F(BoxedImageSourceTest, CropsOverlapAsTheirKindAsks) {
  const ImageSize size{.height = 100, .width = 200};
  const std::vector<LabelledBox> boxes = {{10, 10, 60, 60, 1}, {150, 40, 190, 95, 2}};
  int num_whole = 0;
  for (std::uint64_t stream = 0; stream < 500; ++stream) {
    const PixelBox crop = random_box_crop(size, boxes, stream);
    EXPECT_EQ(crop, random_box_crop(size, boxes, stream));
    ASSERT_TRUE(crop.x >= 0 && crop.y >= 0 && crop.x + crop.width <= 200 &&
                crop.y + crop.height <= 100);
    if (crop == PixelBox{.width = 200, .height = 100}) ++num_whole;
    const auto inside = boxes_in(crop, false, boxes);
    ASSERT_FALSE(inside.empty());
    for (const LabelledBox& box : inside) {
      ASSERT_TRUE(box.x1 >= 0 && box.y1 >= 0 && box.x2 <= 1 && box.y2 <= 1 && box.x1 < box.x2 &&
                  box.y1 < box.y2);
    }
  }
  EXPECT_GT(num_whole, 70);
  EXPECT_LT(num_whole, 250);
  EXPECT_GE(random_box_crop(size, {}, 7).width, 60) << "an image without boxes is cropped too";
}

TEST_F(BoxedImageSourceTest, FlippedBoxesChangeSides) {
  const PixelBox crop{.x = 10, .y = 0, .width = 100, .height = 50};
  EXPECT_THAT(boxes_in(crop, true, {{20, 10, 50, 40, 3}, {0, 0, 12, 50, 1}}),
              testing::ElementsAre(LabelledBox{0.6, 0.2, 0.9, 0.8, 3}))
      << "the other's centre is outside";
}

TEST_F(BoxedImageSourceTest, ColorsMoveByTheirOwnStream) {
  const BoxedImages all = open();
  BoxedImageOptions options = training();
  const BoxedImageSource plain(all, options);
  options.random->colors = ColorJitterOptions{};
  const BoxedImageSource colored(all, options);
  options.random->colors = ColorJitterOptions{0, 0, 0, 0};
  const BoxedImageSource still(all, options);
  const BoxedSample a = boxed_sample_of(plain, {.index = 3}), b = boxed_sample_of(colored, {3});
  EXPECT_EQ(a.boxes, b.boxes);
  EXPECT_NE(a.image, b.image);
  const BoxedSample c = boxed_sample_of(still, {.index = 3});
  for (std::size_t i = 0; i < a.image.size(); ++i) ASSERT_NEAR(a.image[i], c.image[i], 1e-5);
}

TEST(ColorJitter, KeepsGreyGrey) {
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    const ColorMap map = random_colors({}, {90, 100, 110}, stream);
    const auto grey = map({120, 120, 120});
    EXPECT_NEAR(grey[0], grey[1], 1e-9);
    EXPECT_NEAR(grey[0], grey[2], 1e-9);
    const ColorMap turn = random_colors({0, 0, 0, 0.5}, {}, stream);
    const auto red = turn({200, 0, 0});
    EXPECT_NEAR(red[0] + red[1] + red[2], 200, 1e-9) << "a turn keeps the sum";
  }
  EXPECT_THROW(check(ColorJitterOptions{.hue = 0.6}), Error);
  EXPECT_THROW(check(ColorJitterOptions{.contrast = -1}), Error);
}

TEST_F(BoxedImageSourceTest, BadAnnotationsAreNamed) {
  const auto first = [](Json& json) -> Json& { return json["annotations"][0]; };
  const auto bad_box = [&](const Json& box) {
    return problem([&](Json& json) { first(json)["bbox"] = box; });
  };
  const auto at_first = AllOf(HasSubstr("instances.json annotations item 0: annotation 500: "),
                              HasSubstr("\"bbox\""));
  EXPECT_THAT(bad_box({0, 0, 0, 5}), AllOf(at_first, HasSubstr("are above 0")));
  EXPECT_THAT(bad_box({0, 0, 4, -5}), AllOf(at_first, HasSubstr("are above 0")));
  EXPECT_THAT(bad_box({50, 0, 15, 5}), AllOf(at_first, HasSubstr("of its image of 41 x 59")));
  EXPECT_THAT(bad_box({-3, 0, 15, 5}), AllOf(at_first, HasSubstr("outside of its image")));
  EXPECT_THAT(bad_box({1, 2, 3}), HasSubstr("x, y, width and height"));
  EXPECT_THAT(problem([&](Json& json) { first(json)["category_id"] = 8; }),
              HasSubstr("annotation 500: \"category_id\": no category 8"));
  EXPECT_THAT(problem([&](Json& json) { first(json)["image_id"] = 8; }),
              HasSubstr("annotation 500: \"image_id\": no image 8"));
  EXPECT_THAT(problem([&](Json& json) { json["annotations"][1]["id"] = 500; }),
              HasSubstr("there are two with id 500"));
  EXPECT_THAT(problem([&](Json& json) { json["images"][0].erase("file_name"); }),
              HasSubstr("images item 0: expected a text as \"file_name\""));
  EXPECT_THAT(
      problem([&](Json& json) { json["images"][0]["file_name"] = "gone.jpg"; }, ErrorKind::kIo),
      HasSubstr("gone.jpg"));
  EXPECT_THAT(problem([&](Json& json) { json.erase("categories"); }),
              HasSubstr("has no list \"categories\""));
  add_box(99, 7, {48, 0, 11.5, 5});
  EXPECT_EQ(open().images[10].boxes.back().x2, 59) << "rounded: cut off";
}

TEST_F(BoxedImageSourceTest, CrowdsAreLeftOut) {
  file["annotations"][0]["iscrowd"] = 1;
  EXPECT_TRUE(open().images[10].boxes.empty());
}

TEST_F(BoxedImageSourceTest, WrongSizesAndTooManyBoxesAreNamed) {
  file["images"][0]["width"] = 61;
  const BoxedImageSource source(open(), training());
  EXPECT_THAT(test::error_of([&] { boxed_sample_of(source, {.index = 11}); }).message(),
              AllOf(HasSubstr("0.png': "), HasSubstr("40 x 60"), HasSubstr("40 x 61")));
  BoxedImageOptions options = training();
  options.max_boxes = 2;
  EXPECT_THAT(test::error_of([&] { const BoxedImageSource bad(open(), options); }).message(),
              HasSubstr("has 3 boxes; there are places for 2"));
  for (const BoxedImageOptions& bad :
       {BoxedImageOptions{.size = 0, .max_boxes = 9}, BoxedImageOptions{.max_boxes = 0},
        BoxedImageOptions{.max_boxes = 9, .deviation = {1, 0, 1}},
        BoxedImageOptions{.random = BoxedViewOptions{.flip_probability = 2}, .max_boxes = 9}}) {
    EXPECT_EQ(test::error_of([&] { const BoxedImageSource refused(open(), bad); }).kind(),
              ErrorKind::kInvalidArgument);
  }
}

TEST_F(BoxedImageSourceTest, IdentityTellsAllThatChangesBoxedSamples) {
  std::set<std::string> identities;
  const auto is_new = [&](const BoxedImageOptions& options) {
    return identities.insert(BoxedImageSource(open(), options).identity()).second;
  };
  EXPECT_TRUE(is_new(training()));
  EXPECT_FALSE(is_new(training()));
  EXPECT_TRUE(is_new(training(2)));
  BoxedImageOptions options = training();
  options.random->colors = ColorJitterOptions{};
  EXPECT_TRUE(is_new(options));
  options.random.reset();
  EXPECT_TRUE(is_new(options));
  options.seed = 9;
  EXPECT_FALSE(is_new(options)) << "nothing is random in an evaluation";
  add_box(100, 7, {1, 1, 5, 5});
  EXPECT_TRUE(is_new(training()));
}

TEST(PublicBoxedImages, EveryBloodCellIsInItsImage) {
  const std::filesystem::path folder = "../shared/data/det-bccd";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/data/det-bccd";
  const BoxedImages images = open_boxed_images(folder / "val", folder / "instances_val.json");
  EXPECT_THAT(images.category_names, testing::ElementsAre("RBC", "WBC", "Platelets"));
  EXPECT_EQ(images.images.size(), 87U);
  std::size_t count = 0;
  for (const BoxedImage& image : images.images) count += image.boxes.size();
  EXPECT_EQ(count, 1137U);
}

}  // namespace
}  // namespace trireme::vision
