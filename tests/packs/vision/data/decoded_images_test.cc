#include "packs/vision/data/decoded_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "packs/vision/data/image_source.h"
#include "tests/data/folder_files.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/data/parallel_read.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCropSide = 12, kImages = 16, kVisits = 3;
constexpr std::int64_t kRoomForAll = 1 << 20;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class DecodedImagesTest : public data::FolderFiles {
 protected:
  void SetUp() override {
    data::FolderFiles::SetUp();
    for (int i = 0; i < kImages; ++i) {
      const ImageSize size{.height = 30 + i, .width = 50 - i};
      const std::string file =
          i % 3 == 0 ? to_png(size, paint(size, 3, i)) : to_jpeg(size, paint(size, 3, i));
      write("images/a/" + std::to_string(100 + i) + (i % 3 == 0 ? ".png" : ".jpg"), file);
    }
    images = open_images({folder / "images"});
  }

  /// All samples of some epochs, one after the other.
  std::vector<float> epochs(std::shared_ptr<DecodedImages> decoded, int num_threads = 1) const {
    const ImageSource source(images, {.size = kCropSide, .random = RandomCropOptions{}, .seed = 5},
                             std::move(decoded));
    constexpr std::size_t kValues = 3 * kCropSide * kCropSide;
    std::vector<float> values(kVisits * kImages * kValues);
    const auto read = [&](std::int64_t i) {
      std::int64_t label = 0;
      const std::span<float> image =
          std::span(values).subspan(static_cast<std::size_t>(i) * kValues, kValues);
      const std::span<std::byte> places[] = {std::as_writable_bytes(image),
                                             std::as_writable_bytes(std::span(&label, 1))};
      source.read({.index = i % kImages, .visit = i / kImages}, places);
    };
    data::read_each(kVisits * kImages, read, kernels::on_threads(num_threads));
    return values;
  }

  LabelledImages images;
};

TEST_F(DecodedImagesTest, SamplesAreTheSameWithAnyRoom) {
  const std::vector<float> expected = epochs(nullptr);
  for (const fs::path& place : {fs::path(), folder}) {
    for (const std::int64_t room : {std::int64_t{0}, std::int64_t{20000}, kRoomForAll}) {
      const auto decoded = std::make_shared<DecodedImages>(KeepOptions{room, place});
      EXPECT_EQ(epochs(decoded), expected) << room << " bytes in '" << place.string() << "'";
      EXPECT_EQ(epochs(decoded), expected)
          << room << " bytes in '" << place.string() << "', once more";
      const std::int64_t kept = decoded->num_kept();
      EXPECT_EQ(kept == kImages, room == kRoomForAll) << kept;
      EXPECT_EQ(kept == 0, room == 0) << kept;
    }
  }
}

TEST_F(DecodedImagesTest, ThreadsMayMeetAtAnImage) {
  const std::vector<float> expected = epochs(nullptr);
  for (const fs::path& place : {fs::path(), folder}) {
    const auto decoded = std::make_shared<DecodedImages>(KeepOptions{kRoomForAll, place});
    EXPECT_EQ(epochs(decoded, 8), expected);
    EXPECT_EQ(decoded->num_kept(), kImages);
  }
}

TEST_F(DecodedImagesTest, WhatIsKeptIsNotReadAgain) {
  const auto decoded = std::make_shared<DecodedImages>(KeepOptions{kRoomForAll, folder});
  const std::vector<float> expected = epochs(decoded);
  fs::remove_all(folder / "images");
  EXPECT_EQ(epochs(decoded), expected);
  EXPECT_EQ(data::error_of([&] { epochs(nullptr); }).kind(), ErrorKind::kIo);
}

TEST_F(DecodedImagesTest, ADamagedImageHasThePartThatIsSound) {
  const ImageSize size{.height = 64, .width = 48};
  const std::string whole = to_jpeg(size, paint(size, 3));
  const DecodedImages::Encoded cut{
      .read = [&] { return bytes_of(whole.substr(0, whole.size() * 3 / 4)); },
      .name = [] { return std::string("cut.jpg"); }};
  const PixelBox top{.width = 48, .height = 8}, all{.width = 48, .height = 64};
  DecodedImages decoded({.max_bytes = kRoomForAll});
  for (int visit = 0; visit < 2; ++visit) {
    const auto pixels = decoded.get(0, cut, [&](ImageSize) { return top; });
    EXPECT_EQ(pixels->rgb, decode_image(bytes_of(whole), [&](ImageSize) { return top; }).rgb);
    const Error error =
        data::error_of([&] { decoded.get(0, cut, [&](ImageSize) { return all; }); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), testing::StartsWith("cut.jpg: JPEG: "));
  }
  EXPECT_EQ(decoded.num_kept(), 0);
  // Its room was given back.
  const DecodedImages::Encoded sound{.read = [&] { return bytes_of(whole); }, .name = cut.name};
  DecodedImages exact({.max_bytes = 3 * size.num_pixels()});
  exact.get(0, cut, [&](ImageSize) { return top; });
  exact.get(1, sound, [&](ImageSize) { return top; });
  EXPECT_EQ(exact.num_kept(), 1);
}

TEST_F(DecodedImagesTest, AFullDiskKeepsNoMore) {
  const std::vector<float> expected = epochs(nullptr);
  const auto decoded = std::make_shared<DecodedImages>(KeepOptions{kRoomForAll, folder});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{.rlim_cur = 20000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::vector<float> made = epochs(decoded);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(made, expected);
  EXPECT_GT(decoded->num_kept(), 0);
  EXPECT_LT(decoded->num_kept(), kImages);
  const std::int64_t kept = decoded->num_kept();
  EXPECT_EQ(epochs(decoded), expected);
  EXPECT_EQ(decoded->num_kept(), kept) << "once there is room again";
}

TEST_F(DecodedImagesTest, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(data::error_of([] { DecodedImages({.max_bytes = -1}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(
      data::error_of([&] { DecodedImages({.max_bytes = 1, .folder = folder / "none"}); }).kind(),
      ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme::vision
