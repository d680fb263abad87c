#include "packs/vision/data/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/data/folder_files.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"

namespace trireme::vision {
namespace {

using data::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr ImageSize kPainted = {.height = 75, .width = 101};

/// Boxes at each corner and edge, and anywhere.
std::vector<PixelBox> boxes_in(ImageSize size) {
  const std::int64_t w = size.width, h = size.height;
  std::vector<PixelBox> boxes = {
      {0, 0, w, h}, {0, 0, 1, 1}, {w - 1, h - 1, 1, 1}, {0, h - 3, w, 3}, {w - 2, 0, 2, h}};
  std::mt19937 random(1);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  for (int i = 0; i < 40; ++i) {
    PixelBox box{.x = below(w), .y = below(h)};
    box.width = 1 + below(w - box.x);
    box.height = 1 + below(h - box.y);
    boxes.push_back(box);
  }
  return boxes;
}

void expect_parts_of_the_whole(const std::string& file, const std::string& what) {
  const Pixels whole = decode(file);
  EXPECT_EQ(whole.box, (PixelBox{0, 0, kPainted.width, kPainted.height}));
  for (const PixelBox& box : boxes_in(kPainted)) {
    const Pixels part = decode(file, box);
    EXPECT_EQ(part.box, box);
    EXPECT_TRUE(part.rgb == part_of(whole, box))
        << what << ": " << box.width << " x " << box.height << " at " << box.x << ", " << box.y;
  }
}

TEST(DecodeJpeg, APartHasTheBitsOfTheWhole) {
  for (const bool is_progressive : {false, true}) {
    for (const std::array<int, 2> sampling : {std::array{2, 2}, std::array{2, 1}, std::array{1, 2},
                                              std::array{1, 1}, std::array{4, 1}}) {
      const std::string file = to_jpeg(kPainted, paint(kPainted, 3),
                                       {.sampling = sampling, .is_progressive = is_progressive});
      expect_parts_of_the_whole(file, std::to_string(sampling[0]) + std::to_string(sampling[1]) +
                                          (is_progressive ? " progressive" : ""));
    }
  }
  expect_parts_of_the_whole(to_jpeg(kPainted, paint(kPainted, 1), {.channels = 1}), "grey");
  expect_parts_of_the_whole(to_jpeg(kPainted, paint(kPainted, 4), {.channels = 4}), "CMYK");
}

/// The numbers of PIL, from make_images.py.
TEST(DecodeJpeg, PixelsAreThoseOfAnotherProgram) {
  const auto bytes = read_file_bytes("tests/packs/vision/data/images.safetensors");
  const auto file = safetensors::parse(bytes, "images");
  const auto tensor = [&](const std::string& name) {
    for (const auto& one : file.tensors) {
      if (one.name == name) return one;
    }
    throw Error(ErrorKind::kInvalidArgument, "no " + name);
  };
  int num_compared = 0;
  for (const auto& one : file.tensors) {
    if (!one.name.ends_with(".file")) continue;
    const std::string name = one.name.substr(0, one.name.size() - 5);
    const auto expected = tensor(name + ".pixels");
    const Pixels pixels = decode_image(one.bytes);
    EXPECT_EQ(pixels.box.height, expected.shape[0]) << name;
    EXPECT_EQ(pixels.box.width, expected.shape[1]) << name;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(pixels.rgb)), expected.bytes)) << name;
    ++num_compared;
  }
  EXPECT_GE(num_compared, 6);
}

TEST(DecodeJpeg, GreyAndCmykBecomeColours) {
  const std::vector<std::uint8_t> grey(static_cast<std::size_t>(kPainted.num_pixels()), 77);
  const Pixels of_grey = decode(to_jpeg(kPainted, grey, {.channels = 1, .quality = 100}));
  EXPECT_THAT(of_grey.rgb, testing::Each(77));
  // Adobe's inks are inverted: 255 is none.
  std::vector<std::uint8_t> inks;
  for (std::int64_t i = 0; i < kPainted.num_pixels(); ++i)
    inks.insert(inks.end(), {255, 0, 128, 128});
  const Pixels of_inks = decode(to_jpeg(kPainted, inks, {.channels = 4, .quality = 100}));
  EXPECT_NEAR(of_inks.rgb[0], 128, 1);
  EXPECT_NEAR(of_inks.rgb[1], 0, 1);
  EXPECT_NEAR(of_inks.rgb[2], 64, 1);
}

TEST(DecodeJpeg, DamageInThePartIsAnError) {
  const std::string whole = to_jpeg(kPainted, paint(kPainted, 3));
  const auto complaint = [](const std::string& file) {
    const Error error = error_of([&] { decode(file); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    return error.message();
  };
  for (const std::size_t bytes : {4U, 100U, 400U, 700U, 1500U}) {
    EXPECT_THAT(complaint(whole.substr(0, bytes)), HasSubstr("JPEG: ")) << bytes;
  }
  EXPECT_THAT(complaint(whole.substr(0, whole.size() / 2)), HasSubstr("Premature end"));
  const std::string text = "no image at all";
  EXPECT_THAT(complaint(text), AllOf(HasSubstr("expected a JPEG or PNG"), HasSubstr("15 bytes")));
  EXPECT_THAT(complaint(""), HasSubstr("0 bytes"));
}

/// Any bytes are an image or an error: every byte of the header, and some of the rest, changed.
TEST(DecodeJpeg, ChangedBytesAreAnImageOrAnError) {
  const ImageSize size{.height = 20, .width = 24};
  for (const std::string& whole : {to_jpeg(size, paint(size, 3)), to_png(size, paint(size, 3))}) {
    for (std::size_t at = 0; at < whole.size(); at += at < 700 ? 1 : 3) {
      for (const char value : {'\x00', '\xFF'}) {
        std::string changed = whole;
        changed[at] = value;
        try {
          decode(changed);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
        }
      }
    }
  }
}

TEST(DecodePng, APartHasTheBitsOfTheWholeAndPixelsAreKept) {
  const auto levels = paint(kPainted, 3);
  const std::string file = to_png(kPainted, levels);
  EXPECT_EQ(decode(file).rgb, levels);
  expect_parts_of_the_whole(file, "PNG");
}

TEST(DecodePng, GreyAndTransparentOnesBecomeColours) {
  const auto grey = paint(kPainted, 1), with_alpha = paint(kPainted, 4);
  const Pixels of_grey = decode(to_png(kPainted, grey, PNG_FORMAT_GRAY));
  const Pixels of_alpha = decode(to_png(kPainted, with_alpha, PNG_FORMAT_RGBA));
  for (std::size_t i = 0; i < grey.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(of_grey.rgb[3 * i + c], grey[i]);
      ASSERT_EQ(of_alpha.rgb[3 * i + c], with_alpha[4 * i + c]);
    }
  }
}

TEST(DecodePng, DamageIsAnError) {
  const std::string whole = to_png(kPainted, paint(kPainted, 3));
  const auto complaint = [](const std::string& file) {
    const Error error = error_of([&] { decode(file); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    return error.message();
  };
  EXPECT_THAT(complaint(whole.substr(0, whole.size() / 2)), HasSubstr("cut off"));
  EXPECT_THAT(complaint(whole.substr(0, 20)), HasSubstr("PNG: "));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  EXPECT_THAT(complaint(changed), HasSubstr("PNG: "));
}

TEST(Decode, ABoxOutsideIsRefused) {
  for (const std::string& file :
       {to_jpeg(kPainted, paint(kPainted, 3)), to_png(kPainted, paint(kPainted, 3))}) {
    for (const PixelBox box : {PixelBox{-1, 0, 2, 2}, PixelBox{0, 0, 102, 1}, PixelBox{0, 74, 1, 2},
                               PixelBox{0, 0, 0, 1}}) {
      const Error error = error_of([&] { decode(file, box); });
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("not within an image of 101 x 75"));
    }
  }
}

}  // namespace
}  // namespace trireme::vision
