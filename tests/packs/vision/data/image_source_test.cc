#include "packs/vision/data/image_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/data/folder_files.h"
#include "tests/data/tar_file.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/data/parallel_read.h"
#include "trireme/data/table_file.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;
using data::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kSide = 16;

struct ImageSample {
  std::vector<float> image;
  std::int64_t label = -1;
  bool operator==(const ImageSample&) const = default;
};

ImageSample sample_of(const ImageSource& source, data::Sample sample) {
  ImageSample made{.image = std::vector<float>(3 * kSide * kSide)};
  const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(made.image)),
                                         std::as_writable_bytes(std::span(&made.label, 1))};
  source.read(sample, places);
  return made;
}

class ImageSourceTest : public data::FolderFiles {
 protected:
  /// Two classes of JPEGs and PNGs of several sizes, 24 of them.
  LabelledImages images(const std::string& name = "images") const {
    for (int i = 0; i < 24; ++i) {
      const ImageSize size{.height = 30 + i, .width = 50 - i};
      const auto levels = paint(size, 3, i);
      const std::string stem = name + (i % 2 == 0 ? "/a/" : "/b/") + std::to_string(100 + i);
      if (i % 3 == 0) {
        write(stem + ".png", to_png(size, levels));
      } else {
        write(stem + ".jpg", to_jpeg(size, levels));
      }
    }
    return open_images({folder / name});
  }

  static ImageOptions training(std::uint64_t seed = 1) {
    return {.size = kSide, .random = RandomCropOptions{}, .seed = seed};
  }
};

TEST_F(ImageSourceTest, ASampleIsAFunctionOfSeedIndexAndVisit) {
  const LabelledImages all = images();
  const ImageSource source(all, training()), same(all, training()), other(all, training(2));
  const ImageSample first = sample_of(source, {.index = 5, .visit = 1});
  sample_of(source, {.index = 6, .visit = 1});
  EXPECT_EQ(sample_of(source, {.index = 5, .visit = 1}), first);
  EXPECT_EQ(sample_of(same, {.index = 5, .visit = 1}), first);
  EXPECT_NE(sample_of(source, {.index = 5, .visit = 2}).image, first.image);
  EXPECT_NE(sample_of(source, {.index = 4, .visit = 1}).image, first.image);
  EXPECT_NE(sample_of(other, {.index = 5, .visit = 1}).image, first.image);
  EXPECT_EQ(first.label, 0) << "class a comes first";
  EXPECT_EQ(sample_of(source, {.index = 12}).label, 1);
}

TEST_F(ImageSourceTest, FolderAndShardsGiveTheSameSamples) {
  const LabelledImages of_folder = images();
  std::vector<data::TarMember> members;
  for (std::int64_t i = 0; i < of_folder.records->num_records(); ++i) {
    const std::string& field = of_folder.image_fields[static_cast<std::size_t>(i)];
    members.push_back(
        {std::to_string(i) + "." + field, data::text_of(of_folder.records->read(i, field))});
    members.push_back(
        {std::to_string(i) + ".cls", data::text_of(of_folder.records->read(i, "cls"))});
  }
  data::write_tar(folder / "all.tar", members);
  const ImageSource a(of_folder, training()), b(open_images({folder / "all.tar"}), training());
  for (std::int64_t i = 0; i < a.num_samples(); ++i) {
    EXPECT_EQ(sample_of(a, {i, 3}), sample_of(b, {i, 3})) << i;
  }
}

TEST_F(ImageSourceTest, ThreadsDoNotChangeSamples) {
  const ImageSource source(images(), training());
  const auto read = [&](int num_threads) {
    std::vector<ImageSample> samples(40);
    const auto one = [&](std::int64_t i) {
      samples[static_cast<std::size_t>(i)] = sample_of(source, {i * 7 % 24, i / 24});
    };
    data::read_each(std::ssize(samples), one, kernels::on_threads(num_threads));
    return samples;
  };
  const auto expected = read(1);
  for (int threads = 2; threads <= 8; ++threads) EXPECT_EQ(read(threads), expected) << threads;
}

TEST_F(ImageSourceTest, EvaluationTakesTheMiddleAndNothingRandom) {
  const LabelledImages all = images();
  const ImageSource source(all, {.size = kSide, .shorter = 20, .seed = 1});
  const ImageSample first = sample_of(source, {.index = 3});
  EXPECT_EQ(sample_of(source, {.index = 3, .visit = 7}), first);
  // Step by step: the whole image resized, its middle taken, normalised.
  const auto file = all.records->read(3, all.image_fields[3]);
  const Pixels pixels = decode_image(file);
  const ImageSize size{.height = pixels.box.height, .width = pixels.box.width};
  ASSERT_LT(size.height, size.width);
  const ImageSize to{.height = 20, .width = 20 * size.width / size.height};
  std::vector<float> whole(static_cast<std::size_t>(3 * to.num_pixels()));
  resize(pixels,
         {.width = static_cast<double>(size.width),
          .height = static_cast<double>(size.height),
          .bounds = pixels.box},
         {.size = to}, whole.data());
  const std::int64_t left = std::lrint(static_cast<double>(to.width - kSide) / 2.0);
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < kSide; ++x) {
        const float level = whole[static_cast<std::size_t>((c * 20 + y + 2) * to.width + x + left)];
        ASSERT_NEAR(first.image[static_cast<std::size_t>((c * kSide + y) * kSide + x)],
                    (level / 255 - mean[c]) / deviation[c], 1e-4);
      }
    }
  }
}

TEST_F(ImageSourceTest, BytesAreTheLevels) {
  const LabelledImages all = images();
  ImageOptions options = training();
  options.mean = {0, 0, 0};
  options.deviation = {1 / 255.0, 1 / 255.0, 1 / 255.0};
  const ImageSample levels = sample_of(ImageSource(all, options), {.index = 2});
  options.has_bytes = true;
  const ImageSource source(all, options);
  EXPECT_EQ(source.fields()[0], (data::Field{"image", Dtype::kU8, {3, kSide, kSide}}));
  std::vector<std::uint8_t> bytes(3 * kSide * kSide);
  std::int64_t label = 0;
  const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(bytes)),
                                         std::as_writable_bytes(std::span(&label, 1))};
  source.read({.index = 2}, places);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_NEAR(bytes[i], levels.image[i], 0.501);
  }
}

TEST_F(ImageSourceTest, IdentityTellsAllThatChangesSamples) {
  const LabelledImages all = images();
  std::set<std::string> identities;
  const auto is_new = [&](const ImageOptions& options) {
    return identities.insert(ImageSource(all, options).identity()).second;
  };
  EXPECT_TRUE(is_new(training()));
  EXPECT_FALSE(is_new(training()));
  EXPECT_TRUE(is_new(training(2)));
  EXPECT_TRUE(is_new({.size = kSide}));
  EXPECT_TRUE(is_new({.size = kSide, .shorter = 40}));
  EXPECT_FALSE(is_new({.size = kSide, .seed = 3})) << "nothing is random in an evaluation";
  ImageOptions options = training();
  options.random->min_area = 0.5;
  EXPECT_TRUE(is_new(options));
  options.has_bytes = true;
  EXPECT_TRUE(is_new(options));
  const LabelledImages more = images("more");
  write("more/a/999.png", "");
  EXPECT_NE(ImageSource(more, training()).identity(),
            ImageSource(open_images({folder / "more"}), training()).identity());
}

TEST_F(ImageSourceTest, ADamagedImageIsNamedByFileOrShardAndRecord) {
  images();
  write("images/a/100.png", "no image");
  const ImageSource of_folder(open_images({folder / "images"}), training());
  const Error in_folder = error_of([&] { sample_of(of_folder, {.index = 0}); });
  EXPECT_EQ(in_folder.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(in_folder.message(),
              HasSubstr("images/a/100.png', field 'png': expected a JPEG or PNG"));
  const std::string file = to_jpeg({30, 40}, paint({30, 40}, 3));
  data::write_tar(folder / "x.tar", {{"k7.jpg", file.substr(0, 500)}, {"k7.cls", "0"}});
  const ImageSource of_shard(open_images({folder / "x.tar"}), training());
  const Error in_shard = error_of([&] { sample_of(of_shard, {.index = 0}); });
  EXPECT_EQ(in_shard.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(in_shard.message(),
              AllOf(HasSubstr("record 'k7' of '"), HasSubstr("x.tar', field 'jpg': JPEG: ")));
  EXPECT_THAT(error_of([&] { sample_of(of_shard, {.index = 1}); }).message(),
              HasSubstr("no sample 1 among 1"));
}

TEST_F(ImageSourceTest, OptionsOutOfRangeAreRefused) {
  const LabelledImages all = images();
  for (const ImageOptions& options :
       {ImageOptions{.size = 0}, ImageOptions{.size = 300}, ImageOptions{.deviation = {1, 0, 1}},
        ImageOptions{.random = RandomCropOptions{.min_area = 2}}}) {
    const Error error = error_of([&] { const ImageSource source(all, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
}

TEST(PublicImages, EveryFlowerIsASample) {
  const fs::path folder = "../shared/data/img-flowers/val";
  if (!fs::exists(folder)) GTEST_SKIP() << "no ../shared/data/img-flowers";
  const ImageSource source(open_images({folder}), {.size = kSide, .shorter = 18});
  EXPECT_THAT(source.images().classes,
              testing::ElementsAre("daisy", "dandelion", "roses", "sunflowers", "tulips"));
  ASSERT_EQ(source.num_samples(), 75);
  for (std::int64_t i = 0; i < 75; i += 5) {
    const ImageSample sample = sample_of(source, {i});
    EXPECT_EQ(sample.label, i / 15);
    for (const float value : sample.image) ASSERT_LT(std::abs(value), 3);
  }
}

/// Columns as Hugging Face's datasets have them (tests/data/tables/make.py).
TEST_F(ImageSourceTest, ImagesOfParquetAreFoundByTheirColumns) {
  try {
    data::load_table_library();
  } catch (const Error& error) {
    GTEST_SKIP() << "no pyarrow: " << error.message();
  }
  const LabelledImages images = open_images(
      {"tests/data/tables/images.parquet"},
      {.image_field = "image.bytes", .label_field = "label", .label_form = LabelForm::kI64});
  EXPECT_THAT(images.labels, testing::ElementsAre(2, 0, 1));
  const ImageSource source(images, {.size = 4, .shorter = 6, .has_bytes = true});
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> image(std::size_t{3} * 4 * 4);
    std::int64_t label = -1;
    const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(image)),
                                           std::as_writable_bytes(std::span(&label, 1))};
    source.read({.index = i}, places);
    EXPECT_EQ(label, images.labels[static_cast<std::size_t>(i)]);
    EXPECT_EQ(image.front(), 50 * (i + 1)) << "red";
    EXPECT_EQ(image.back(), 0) << "blue";
  }
}

}  // namespace
}  // namespace trireme::vision
