#include "packs/vision/coco/rle.h"

#include <gtest/gtest.h>

#include <random>

#include "packs/vision/coco/mask_list.h"
#include "packs/vision/coco/polygon.h"
#include "tests/base/error_of.h"

namespace trireme::vision {
namespace {

using Counts = std::vector<std::int64_t>;
using Pixels = std::vector<std::uint8_t>;

constexpr ImageSize kSize{3, 4};  // 3 rows, 4 columns

Pixels random_pixels(ImageSize size, unsigned seed) {
  std::mt19937 random(seed);
  const unsigned share = random() % 5;
  Pixels pixels(size.num_pixels());
  for (auto& pixel : pixels) pixel = random() % 4 < share ? 1 : 0;
  return pixels;
}

TEST(Rle, RunsGoDownTheColumns) {
  const Pixels pixels = {0, 1, 0, 0,  //
                         1, 1, 0, 0,  //
                         1, 0, 0, 1};
  const Rle rle = from_pixels(kSize, pixels);
  EXPECT_EQ(to_counts(rle), (std::vector<std::uint32_t>{1, 4, 6, 1}));
  EXPECT_EQ(area(rle), 5);
  EXPECT_EQ(bounding_box(rle), (Box{0, 0, 4, 3}));
  EXPECT_EQ(to_pixels(rle), pixels);
}

TEST(Rle, FormsReadBack) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const ImageSize size{1 + seed % 7, 1 + seed % 11};
    const Rle rle = from_pixels(size, random_pixels(size, seed));
    const std::vector<std::uint32_t> counts = to_counts(rle);
    EXPECT_EQ(from_counts(size, Counts(counts.begin(), counts.end())), rle);
    EXPECT_EQ(parse_rle(size, to_text(rle)), rle);
    EXPECT_EQ(from_pixels(size, to_pixels(rle)), rle);
  }
}

TEST(Rle, ACountOfZeroJoinsItsNeighbours) {
  EXPECT_EQ(from_counts(kSize, Counts{2, 3, 0, 4, 3}), from_counts(kSize, Counts{2, 7, 3}));
  EXPECT_EQ(from_counts(kSize, Counts{12, 0}), from_counts(kSize, Counts{12}));
  EXPECT_EQ(from_counts(kSize, Counts{0, 0, 5, 7, 0, 0}), from_counts(kSize, Counts{5, 7}));
}

TEST(Rle, OperationsAreThoseOfPixels) {
  const ImageSize size{7, 9};
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Pixels a = random_pixels(size, seed), b = random_pixels(size, seed + 1000);
    Pixels either(a.size()), both(a.size());
    std::int64_t num_a = 0, num_either = 0, num_both = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      num_a += a[i];
      num_either += either[i] = a[i] | b[i];
      num_both += both[i] = a[i] & b[i];
    }
    const Rle masks[] = {from_pixels(size, a), from_pixels(size, b)};
    EXPECT_EQ(union_of(masks), from_pixels(size, either));
    EXPECT_EQ(intersection_of(masks), from_pixels(size, both));
    const Rle twice[] = {masks[1], masks[1]};
    const std::vector<double> ious =
        iou(std::span(masks).first(1), twice, std::vector<std::uint8_t>{0, 1});
    const auto ratio = [&](std::int64_t whole) {
      return num_both == 0 ? 0 : static_cast<double>(num_both) / static_cast<double>(whole);
    };
    EXPECT_EQ(ious[0], ratio(num_either));
    EXPECT_EQ(ious[1], ratio(num_a));
  }
}

TEST(Rle, ErrorsNameWhatIsWrong) {
  const auto message = [](const std::function<void()>& act) {
    const Error error = test::error_of(act);
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  };
  EXPECT_EQ(message([] { from_counts(kSize, Counts{5}); }),
            "expected counts that sum to the 12 pixels of 3 x 4, got 5");
  EXPECT_EQ(message([] { from_counts(kSize, Counts{5, -1, 8}); }), "count 1 of a mask is negative");
  EXPECT_EQ(message([] { from_counts(kSize, Counts{5, 8}); }),
            "the counts of a mask go beyond the 12 pixels of 3 x 4 at count 1");
  EXPECT_EQ(message([] { from_counts({0, 4}, Counts{}); }),
            "expected a mask of 1 to 2^32 - 1 pixels, got 0 x 4");
  EXPECT_EQ(message([] { from_counts({1 << 20, 1 << 20}, Counts{}); }),
            "expected a mask of 1 to 2^32 - 1 pixels, got 1048576 x 1048576");
  EXPECT_EQ(message([] { parse_rle(kSize, "\n"); }),
            "the counts of a mask have the byte 10, which is none of '0' to 'o'");
  EXPECT_EQ(message([] { parse_rle(kSize, "o"); }), "the counts of a mask end within a number");
  EXPECT_EQ(message([] { parse_rle(kSize, "oooooooooooooooo"); }),
            "a count of a mask has more than 12 characters");
}

TEST(Polygon, OfWholeCoordinatesHasThePixelsInside) {
  const Rle square = from_box({5, 6}, {1, 2, 3, 2});
  EXPECT_EQ(to_pixels(square), (Pixels{0, 0, 0, 0, 0, 0,  //
                                       0, 0, 0, 0, 0, 0,  //
                                       0, 1, 1, 1, 0, 0,  //
                                       0, 1, 1, 1, 0, 0,  //
                                       0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(area(from_box({5, 6}, {-3, -3, 100, 100})), 30);
  EXPECT_EQ(area(from_box({5, 6}, {1, 1, 0, 3})), 0);
  EXPECT_EQ(area(from_box({5, 6}, {20, 20, 5, 5})), 0);
}

TEST(Polygon, ErrorsNameWhatIsWrong) {
  const std::vector<double> odd = {1, 2, 3, 4, 5}, far = {0, 0, 1e9, 0, 0, 3};
  EXPECT_EQ(test::error_of([&] { from_polygon({5, 6}, odd); }).message(),
            "expected an even number of coordinates of a polygon, at least 4, got 5");
  EXPECT_EQ(test::error_of([&] { from_polygon({5, 6}, far); }).kind(), ErrorKind::kCorruptData);
}

}  // namespace
}  // namespace trireme::vision
