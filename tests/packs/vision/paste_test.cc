#include "packs/vision/coco/paste.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/base/error_of.h"

namespace trireme::vision {
namespace {

/// All ones, in a box.
SoftMask ones(const std::vector<float>& values, float left, float top, float right, float bottom) {
  return {.values = values, .side = 4, .left = left, .top = top, .right = right, .bottom = bottom};
}

TEST(Paste, FillsTheBoxUpToHalfWhereTheBorderFades) {
  const std::vector<float> values(16, 1.0F);
  // The padded mask has six cells in [4, 28), 25 pixels: cell 0 and 5 are the border.
  const Rle mask = paste({40, 40}, ones(values, 8, 8, 24, 24));
  const Box box = bounding_box(mask);
  EXPECT_EQ(box, (Box{8, 8, 17, 17}));
  EXPECT_LT(area(mask), 17 * 17);  // corners fade twice
}

TEST(Paste, LeavesOutWhatIsOutsideTheImage) {
  const std::vector<float> values(16, 1.0F);
  EXPECT_EQ(area(paste({10, 12}, ones(values, -50, -50, 60, 60))), 120);
  EXPECT_EQ(area(paste({10, 12}, ones(values, 100, 100, 120, 120))), 0);
  EXPECT_EQ(area(paste({10, 12}, ones(values, -90, -90, -50, -50))), 0);
  const std::vector<std::uint8_t> whole = to_pixels(paste({90, 90}, ones(values, 26, 35, 80, 80)));
  const std::vector<std::uint8_t> cut = to_pixels(paste({60, 50}, ones(values, 26, 35, 80, 80)));
  for (int y = 0; y < 60; ++y) {
    for (int x = 0; x < 50; ++x) EXPECT_EQ(cut[y * 50 + x], whole[y * 90 + x]) << x << ", " << y;
  }
}

TEST(Paste, TakesEmptyAndTurnedBoxes) {
  const std::vector<float> values(16, 1.0F);
  EXPECT_EQ(area(paste({10, 12}, ones(values, 5, 5, 5, 5))), 1);
  EXPECT_LE(area(paste({10, 12}, ones(values, 8, 8, 2, 2))), 1);
}

TEST(Paste, ErrorsNameWhatIsWrong) {
  const std::vector<float> values(15, 1.0F);
  EXPECT_EQ(test::error_of([&] { paste({10, 12}, ones(values, 1, 1, 5, 5)); }).message(),
            "expected a square mask of side 1 to 4096, got side 4 and 15 values");
  const std::vector<float> right(16, 1.0F);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(test::error_of([&] { paste({10, 12}, ones(right, 1, nan, 5, 5)); }).kind(),
            ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace trireme::vision
