#include "packs/volume/kernels/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/base/error_of.h"

namespace trireme::volume {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trireme::test::error_of;

std::vector<float> linear(const VolumeShape& from, const std::vector<float>& values,
                          const VolumeShape& to) {
  std::vector<float> result(static_cast<std::size_t>(to.count()));
  resample_linear(from, values.data(), to, result.data());
  return result;
}

std::vector<std::uint8_t> nearest(const VolumeShape& from, const std::vector<std::uint8_t>& labels,
                                  const VolumeShape& to) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(to.count()));
  resample_nearest(from, labels.data(), to, result.data());
  return result;
}

TEST(Resample, EndsStayAndPlacesBetweenAreWeighed) {
  EXPECT_THAT(linear({1, 1, 3}, {0, 4, 8}, {1, 1, 5}), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(linear({1, 3, 1}, {0, 4, 8}, {1, 2, 1}), ElementsAre(0, 8));
  EXPECT_THAT(linear({3, 1, 1}, {0, 4, 8}, {1, 1, 1}), ElementsAre(0));
  EXPECT_THAT(linear({1, 1, 1}, {3}, {1, 2, 2}), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(linear({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, {3, 3, 3}),
              ElementsAre(0, .5, 1, 1, 1.5, 2, 2, 2.5, 3, 2, 2.5, 3, 3, 3.5, 4, 4, 4.5, 5, 4, 4.5,
                          5, 5, 5.5, 6, 6, 6.5, 7));
}

TEST(Resample, LabelsAreThoseOfTheNearestVoxelBefore) {
  EXPECT_THAT(nearest({1, 1, 3}, {1, 2, 3}, {1, 1, 5}), ElementsAre(1, 1, 2, 2, 3));
  EXPECT_THAT(nearest({1, 4, 1}, {1, 2, 3, 4}, {1, 2, 1}), ElementsAre(1, 3));
  EXPECT_THAT(nearest({2, 1, 2}, {1, 2, 3, 4}, {3, 1, 2}), ElementsAre(1, 2, 1, 2, 3, 4));
}

TEST(Resample, ShapesFollowTheSpacing) {
  EXPECT_EQ(resampled_shape({100, 512, 512}, {3, 0.8, 0.8}, {1.6, 1.2, 1.2}),
            (VolumeShape{187, 341, 341}));
  EXPECT_EQ(resampled_shape({7, 7, 7}, {1.6, 1.2, 0.1}, {1.6, 1.2, 10}), (VolumeShape{7, 7, 1}));
  const Spacing file = {double{0.7F}, double{0.9F}, 1.2}, wanted = {0.7, 0.9, 0.4};
  EXPECT_EQ(resampled_shape({100, 100, 100}, file, wanted), (VolumeShape{100, 100, 300}));
  EXPECT_TRUE(is_same_spacing({double{1.6F}, 1.2, 1.2}, {1.6, 1.2, double{1.2F}}));
  EXPECT_FALSE(is_same_spacing({1.6, 1.2, 1.2}, {1.6, 1.2, 1.201}));
  EXPECT_THAT(error_of([] { resampled_shape({1, 1, 1}, {1, 1, 1}, {1, -1, 1}); }).message(),
              HasSubstr("to such of -1 along y"));
  EXPECT_THAT(error_of([] { resampled_shape({9, 9, 9}, {1e30, 1, 1}, {1e-3, 1, 1}); }).message(),
              HasSubstr("resampling: the result"));
}

}  // namespace
}  // namespace trireme::volume
