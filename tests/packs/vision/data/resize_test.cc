#include "packs/vision/data/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "packs/vision/data/image_views.h"
#include "tests/data/folder_files.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"

namespace trireme::vision {
namespace {

using data::error_of;
using testing::HasSubstr;

/// images.safetensors, from make_images.py.
class Images {
 public:
  Images() : bytes_(read_file_bytes("tests/packs/vision/data/images.safetensors")) {
    for (const auto& tensor : safetensors::parse(bytes_, "images").tensors) {
      tensors_.push_back(tensor);
    }
  }

  const safetensors::Tensor& at(const std::string& name) const {
    return *std::ranges::find(tensors_, name, &safetensors::Tensor::name);
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<safetensors::Tensor> tensors_;
};

std::vector<float> resized(const Pixels& pixels, const Sampling& sampling,
                           const ResizeOptions& options) {
  std::vector<float> out(static_cast<std::size_t>(3 * options.size.num_pixels()));
  resize(pixels, sampling, options, out.data());
  return out;
}

Sampling all_of(ImageSize size) {
  return {.width = static_cast<double>(size.width),
          .height = static_cast<double>(size.height),
          .bounds = {.width = size.width, .height = size.height}};
}

struct Case {
  const char* name;
  Sampling sampling;
};

/// PIL rounds to 8 bits after each direction, here nothing is rounded.
TEST(Resize, IsWithinAGreyLevelOfAnotherProgram) {
  const Images images;
  const Pixels pixels = decode_image(images.at("png.file").bytes);
  const ImageSize size{.height = pixels.box.height, .width = pixels.box.width};
  const PixelBox crop{.x = 5, .y = 3, .width = 36, .height = 30};
  for (const auto& [name, sampling] :
       {Case{"smaller", all_of(size)}, Case{"larger", all_of(size)}, Case{"mixed", all_of(size)},
        Case{"crop", {5, 3, 36, 30, crop}},
        Case{"window", {6.5, 2.25, 38.25, 32.25, pixels.box}}}) {
    const auto& expected = images.at(std::string(name) + ".resized");
    const ImageSize to{.height = expected.shape[0], .width = expected.shape[1]};
    const auto actual = resized(pixels, sampling, {.size = to});
    double largest = 0;
    for (std::int64_t i = 0; i < to.num_pixels(); ++i) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto level =
            std::to_integer<int>(expected.bytes[static_cast<std::size_t>(3 * i + c)]);
        const float made = actual[static_cast<std::size_t>(c * to.num_pixels() + i)];
        largest = std::max(largest, std::abs(static_cast<double>(made) - level));
      }
    }
    EXPECT_LT(largest, 1.01) << name;
    EXPECT_GT(largest, 0.2) << name << ": it rounds twice";
  }
}

TEST(Resize, ThePartThatIsNeededGivesTheBitsOfTheWhole) {
  const ImageSize size{.height = 61, .width = 83};
  const std::string file = to_png(size, paint(size, 3));
  const Pixels whole = decode(file);
  for (const Sampling& sampling :
       {Sampling{10.5, 7.25, 40, 31.5, {0, 0, 83, 61}}, Sampling{20, 11, 30, 25, {20, 11, 30, 25}},
        Sampling{20, 11, 3, 2, {0, 0, 83, 61}}}) {
    const ResizeOptions options{.size = {.height = 12, .width = 14}};
    const PixelBox needed = pixels_for(sampling, options.size);
    EXPECT_LT(needed.width, size.width);
    EXPECT_EQ(resized(decode(file, needed), sampling, options), resized(whole, sampling, options));
    PixelBox smaller = needed;
    --smaller.width;
    EXPECT_THAT(error_of([&] { resized(decode(file, smaller), sampling, options); }).message(),
                HasSubstr("are needed"));
  }
}

TEST(Resize, FlipAndScaleAreAppliedToTheResult) {
  const ImageSize size{.height = 30, .width = 40};
  const Pixels pixels = decode(to_png(size, paint(size, 3)));
  const ImageSize to{.height = 9, .width = 7};
  const auto plain = resized(pixels, all_of(size), {.size = to});
  const LevelScale scale{.factor = {2, 3, 0.5F}, .offset = {1, -1, 0}};
  const auto actual =
      resized(pixels, all_of(size), {.size = to, .is_flipped = true, .scale = scale});
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < 9; ++y) {
      for (std::size_t x = 0; x < 7; ++x) {
        EXPECT_EQ(actual[(c * 9 + y) * 7 + x],
                  plain[(c * 9 + y) * 7 + 6 - x] * scale.factor[c] + scale.offset[c]);
      }
    }
  }
}

TEST(Resize, AnEvenImageStaysEven) {
  const ImageSize size{.height = 33, .width = 47};
  const std::vector<std::uint8_t> levels(static_cast<std::size_t>(size.num_pixels() * 3), 200);
  const Pixels pixels = decode(to_png(size, levels));
  for (const ImageSize to : {ImageSize{1, 1}, ImageSize{5, 90}, ImageSize{33, 47}}) {
    for (const float level : resized(pixels, all_of(size), {.size = to})) {
      EXPECT_NEAR(level, 200, 1e-4);
    }
  }
}

TEST(RandomCrop, IsWithinTheImageAndAsLargeAsAskedFor) {
  const ImageSize size{.height = 400, .width = 500};
  const RandomCropOptions options{.min_area = 0.2, .max_area = 0.6};
  double least = 1, most = 0, left = 500, right = 0;
  for (std::uint64_t stream = 0; stream < 2000; ++stream) {
    const Sampling crop = random_crop(size, options, stream);
    EXPECT_EQ(crop.x, static_cast<double>(crop.bounds.x));
    EXPECT_EQ(crop.height, static_cast<double>(crop.bounds.height));
    EXPECT_TRUE(crop.x >= 0 && crop.x + crop.width <= 500);
    EXPECT_TRUE(crop.y >= 0 && crop.y + crop.height <= 400);
    const double area = crop.width * crop.height / 200'000, aspect = crop.width / crop.height;
    EXPECT_TRUE(aspect > 0.74 && aspect < 1.35) << aspect;
    least = std::min(least, area);
    most = std::max(most, area);
    left = std::min(left, crop.x);
    right = std::max(right, crop.x + crop.width);
  }
  EXPECT_NEAR(least, 0.2, 0.01);
  EXPECT_NEAR(most, 0.6, 0.01);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(right, 500);
}

TEST(RandomCrop, WhereNoneFitsItIsTheMiddle) {
  const Sampling wide = random_crop({.height = 10, .width = 300}, {.min_area = 0.9}, 1);
  EXPECT_EQ(wide.bounds, (PixelBox{143, 0, 13, 10}));
  const Sampling high = random_crop({.height = 300, .width = 10}, {.min_area = 0.9}, 1);
  EXPECT_EQ(high.bounds, (PixelBox{0, 143, 10, 13}));
  const Sampling one = random_crop({.height = 1, .width = 1}, {}, 1);
  EXPECT_EQ(one.bounds, (PixelBox{0, 0, 1, 1}));
}

TEST(RandomFlip, HappensAsOftenAsAskedFor) {
  int flips = 0;
  for (std::uint64_t stream = 0; stream < 4000; ++stream)
    flips += random_flip(0.25, stream) ? 1 : 0;
  EXPECT_NEAR(flips, 1000, 100);
  EXPECT_FALSE(random_flip(0, 1));
  EXPECT_TRUE(random_flip(1, 1));
}

TEST(CenterCrop, IsTheMiddleOfTheResizedImage) {
  // 500 x 400 is resized to 320 x 256, of which columns 48 to 272 and rows 16 to 240 are taken.
  const Sampling wide = center_crop({.height = 400, .width = 500}, 256, 224);
  EXPECT_DOUBLE_EQ(wide.x, 48 * 1.5625);
  EXPECT_DOUBLE_EQ(wide.y, 16 * 1.5625);
  EXPECT_DOUBLE_EQ(wide.width, 350);
  EXPECT_DOUBLE_EQ(wide.height, 350);
  EXPECT_EQ(wide.bounds, (PixelBox{0, 0, 500, 400}));
  // 30 x 47: the longer side becomes 50, not 50.13.
  const Sampling high = center_crop({.height = 47, .width = 30}, 32, 32);
  EXPECT_DOUBLE_EQ(high.height, 32 * 47.0 / 50);
  EXPECT_DOUBLE_EQ(high.width, 30);
}

TEST(RandomCrop, OptionsOutOfRangeAreRefused) {
  for (const RandomCropOptions& options :
       {RandomCropOptions{.min_area = 0}, RandomCropOptions{.max_area = 1.5},
        RandomCropOptions{.min_area = 0.5, .max_area = 0.4}, RandomCropOptions{.min_aspect = 2},
        RandomCropOptions{.flip_probability = 1.1}, RandomCropOptions{.min_area = NAN}}) {
    EXPECT_EQ(error_of([&] { check(options); }).kind(), ErrorKind::kInvalidArgument);
  }
}

}  // namespace
}  // namespace trireme::vision
