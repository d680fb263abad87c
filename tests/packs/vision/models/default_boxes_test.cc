#include "packs/vision/models/default_boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

std::vector<std::int64_t> sides_for(std::int64_t size) {
  std::vector<std::int64_t> sides;
  for (const BoxLevel& level : box_levels(size)) sides.push_back(level.side);
  return sides;
}

TEST(DefaultBoxes, Of300PixelsAreThoseOfThePaper) {
  const auto levels = box_levels(300);
  EXPECT_THAT(sides_for(300), testing::ElementsAre(38, 19, 10, 5, 3, 1));
  const auto boxes = default_boxes(levels);
  ASSERT_EQ(boxes.size(), 4U * 8732);
  // The first: 21 pixels around the centre of the first 8; then sqrt(21 x 45).
  for (const int i : {0, 1}) EXPECT_NEAR(boxes[i] * 300, 4 - 10.5, 1e-4);
  EXPECT_NEAR((boxes[6] - boxes[4]) * 300, std::sqrt(21.0 * 45), 1e-4);
  EXPECT_NEAR((boxes[10] - boxes[8]) * 300, 21 * std::sqrt(2), 1e-4);
  EXPECT_NEAR((boxes[11] - boxes[9]) * 300, 21 / std::sqrt(2), 1e-4);
  const double steps[] = {8, 16, 32, 64, 100, 300}, sizes[] = {21, 45, 99, 153, 207, 261};
  const std::int64_t counts[] = {4, 6, 6, 6, 4, 4};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(levels[i].step * 300, steps[i], 1e-9);
    EXPECT_NEAR(levels[i].widths[0] * 300, sizes[i], 1e-9);
    EXPECT_EQ(levels[i].boxes_per_place(), counts[i]);
  }
}

TEST(DefaultBoxes, ThereAreSomeForEverySize) {
  EXPECT_THAT(sides_for(160), testing::ElementsAre(20, 10, 5, 3, 1));
  EXPECT_THAT(sides_for(128), testing::ElementsAre(16, 8, 4, 2));
  EXPECT_THAT(sides_for(96), testing::ElementsAre(12, 6, 3, 1));
  EXPECT_THAT(sides_for(32), testing::ElementsAre(4, 2));
  for (std::int64_t size = 32; size <= 640; size += 7) {
    for (const float at : default_boxes(box_levels(size))) ASSERT_LE(std::abs(at), 1.5F) << size;
  }
  EXPECT_THROW(box_levels(31), Error);
  EXPECT_THROW(box_levels(2049), Error);
}

}  // namespace
}  // namespace trireme::vision
