#include "packs/vision/data/decoded_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "packs/vision/data/image_source.h"
#include "tests/data/folder_files.h"
#include "tests/packs/vision/data/image_files.h"
#include "trireme/data/parallel_read.h"
#include "trireme/data/repeated_order.h"
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

/// Three visits are an epoch, a half of one, or three; the room, what one image needs, a few, or all.
TEST_F(DecodedImagesTest, SamplesAreTheSameHoweverSoonImagesAreDropped) {
  const std::vector<float> expected = epochs(nullptr);
  for (const fs::path& place : {fs::path(), folder}) {
    for (const std::int64_t times : {1, 2, 3}) {
      for (const std::int64_t room : {std::int64_t{5000}, std::int64_t{20000}, kRoomForAll}) {
        SCOPED_TRACE(std::to_string(times) + " times in " + std::to_string(room) + " of '" +
                     place.string() + "'");
        for (const int num_threads : {1, 8}) {
          const auto decoded = std::make_shared<DecodedImages>(KeepOptions{room, place, times});
          EXPECT_EQ(epochs(decoded, num_threads), expected);
          if (num_threads > 1) continue;  // whose visits overlap
          EXPECT_EQ(decoded->num_kept() == 0, times != 2) << "the third visit is an epoch's first";
        }
      }
    }
  }
}

/// In blocks of 8 of the 16 images, in batches of 4.
class RepeatedImagesTest : public DecodedImagesTest {
 protected:
  static constexpr std::int64_t kTimes = 4, kBlock = 8, kEpochs = 3;

  std::int64_t bytes_of_image(std::int64_t i) const { return 3 * (30 + i) * (50 - i); }

  DecodedImages::Encoded counted(std::int64_t index) {
    const auto read = [this, index] {
      ++num_read[index];
      return images.records->read(index, images.image_fields[static_cast<std::size_t>(index)]);
    };
    return {.read = read, .name = [] { return std::string("image"); }};
  }

  /// Most images that were kept at a time.
  std::int64_t visit_all(DecodedImages& decoded) {
    const data::RepeatedOrder order(kImages, 3, data::OrderKind::kShuffled,
                                    {.times = kTimes, .block_samples = kBlock}, 4);
    std::int64_t most = 0;
    for (std::int64_t place = 0; place < kEpochs * kTimes * kImages; ++place) {
      const data::Sample sample = order.sample_at(place);
      decoded.get(sample, counted(sample.index),
                  [](ImageSize) { return PixelBox{.x = 2, .y = 3, .width = 5, .height = 4}; });
      most = std::max(most, decoded.num_kept());
    }
    return most;
  }

  std::map<std::int64_t, std::int64_t> num_read;
};

TEST_F(RepeatedImagesTest, AnImageIsDecodedOnceForAllUsesOfAnEpoch) {
  for (const fs::path& place : {fs::path(), folder}) {
    num_read.clear();
    DecodedImages decoded({.max_bytes = kRoomForAll, .folder = place, .times = kTimes});
    EXPECT_EQ(visit_all(decoded), kBlock) << "those of a block";
    EXPECT_EQ(decoded.num_kept(), 0);
    for (std::int64_t i = 0; i < kImages; ++i) EXPECT_EQ(num_read[i], kEpochs) << "image " << i;
  }
}

/// What an image took is free for those of the next block: else the first would fill it.
TEST_F(RepeatedImagesTest, ABlockNeedsNoMoreRoomThanItsImages) {
  constexpr std::int64_t kLargest = 3 * 40 * 40;
  for (const fs::path& place : {fs::path(), folder}) {
    num_read.clear();
    // In a file, gaps that are too small for any.
    DecodedImages decoded({.max_bytes = (place.empty() ? kBlock : 2 * kBlock) * kLargest,
                           .folder = place,
                           .times = kTimes});
    visit_all(decoded);
    for (std::int64_t i = 0; i < kImages; ++i) EXPECT_EQ(num_read[i], kEpochs) << "image " << i;
  }
}

TEST_F(RepeatedImagesTest, WhatHasNoRoomIsDecodedForEachUse) {
  const std::int64_t room = 2 * 3 * 40 * 40;
  DecodedImages decoded({.max_bytes = room, .times = kTimes});
  EXPECT_EQ(visit_all(decoded), 2);
  std::int64_t total = 0;
  for (const auto& [index, count] : num_read) total += count;
  // Of 8 images of a block two are decoded once, the others by each of 4 visits.
  EXPECT_EQ(total, kEpochs * 2 * (2 + 6 * kTimes));
}

/// Their last visit may be another rank's, in the last block of an epoch.
TEST_F(RepeatedImagesTest, ImagesOfAnEpochBeforeAreDropped) {
  DecodedImages decoded({.max_bytes = kRoomForAll, .times = kTimes});
  const auto visit = [&](std::int64_t index, std::int64_t visit) {
    decoded.get({.index = index, .visit = visit}, counted(index),
                [](ImageSize) { return PixelBox{.width = 5, .height = 4}; });
  };
  for (std::int64_t i = 0; i < 5; ++i) visit(i, kTimes);
  EXPECT_EQ(decoded.num_kept(), 5);
  visit(5, 0);
  EXPECT_EQ(decoded.num_kept(), 6) << "an epoch that is behind";
  visit(6, 2 * kTimes);
  EXPECT_EQ(decoded.num_kept(), 1);
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
    const auto pixels = decoded.get({0}, cut, [&](ImageSize) { return top; });
    EXPECT_EQ(pixels->rgb, decode_image(bytes_of(whole), [&](ImageSize) { return top; }).rgb);
    const Error error =
        data::error_of([&] { decoded.get({0}, cut, [&](ImageSize) { return all; }); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), testing::StartsWith("cut.jpg: JPEG: "));
  }
  EXPECT_EQ(decoded.num_kept(), 0);
  // Its room was given back.
  const DecodedImages::Encoded sound{.read = [&] { return bytes_of(whole); }, .name = cut.name};
  DecodedImages exact({.max_bytes = 3 * size.num_pixels()});
  exact.get({0}, cut, [&](ImageSize) { return top; });
  exact.get({1}, sound, [&](ImageSize) { return top; });
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
  EXPECT_THAT(data::error_of([] { DecodedImages({.times = -1}); }).message(),
              testing::HasSubstr("after 1 visit or more, or 0 for never, got -1"));
}

}  // namespace
}  // namespace trireme::vision
