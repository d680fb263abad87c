#include "packs/volume/kernels/crop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/packs/volume/reference/crop.h"

namespace trireme::volume {
namespace {

constexpr VolumeShape kShape{20, 30, 40};

void fill(std::vector<std::uint8_t>& labels, const VolumeBox& box, std::uint8_t label) {
  for (std::int64_t z = box.begin[0]; z < box.end[0]; ++z) {
    for (std::int64_t y = box.begin[1]; y < box.end[1]; ++y) {
      for (std::int64_t x = box.begin[2]; x < box.end[2]; ++x) {
        labels[(z * kShape.height + y) * kShape.width + x] = label;
      }
    }
  }
}

const VolumeBox kLarge{{2, 2, 2}, {18, 10, 9}};       // of label 1, longer than the patch in z
const VolumeBox kSmall{{4, 20, 30}, {7, 24, 33}};     // of label 1
const VolumeBox kTiny{{0, 29, 0}, {1, 30, 1}};        // of label 1, the third
const VolumeBox kCorner{{15, 27, 37}, {20, 30, 40}};  // of label 4

Foreground make_foreground(const CropOptions& options) {
  std::vector<std::uint8_t> labels(kShape.count());
  fill(labels, kTiny, 1);
  fill(labels, kSmall, 1);
  fill(labels, kLarge, 1);
  fill(labels, kCorner, 4);
  return find_foreground(options, kShape, labels.data());
}

CropOptions make_options(double share) { return {.patch = {8, 12, 16}, .foreground_share = share}; }

/// Of random labels, a third of them not 0.
template <typename Label>
void expect_crops_of_reference(const VolumeShape& shape, const CropOptions& options) {
  std::mt19937 random(static_cast<unsigned>(shape.count()));
  std::vector<Label> labels(shape.count());
  for (Label& label : labels) label = static_cast<Label>(random() % 3 == 0 ? 1 + random() % 3 : 0);
  const Foreground found = find_foreground(options, shape, labels.data());
  const Foreground expected = reference::find_foreground(options, shape, labels);
  EXPECT_EQ(found.shape, expected.shape);
  ASSERT_EQ(found.classes.size(), expected.classes.size());
  for (std::size_t c = 0; c < found.classes.size(); ++c) {
    EXPECT_EQ(found.classes[c].label, expected.classes[c].label);
    EXPECT_EQ(found.classes[c].objects, expected.classes[c].objects);
  }
  for (const std::uint64_t index : {0, 1, 2, 3, 100, 101, 102, 103}) {
    const std::uint64_t sample = index << (index % 2 * 32);  // every other one has an upper half
    const Crop crop = choose_crop(options, found, 7, sample);
    const Crop other = reference::choose_crop(options, expected, 7, sample);
    EXPECT_EQ(crop.label, other.label);
    EXPECT_EQ(crop.begin, other.begin);
  }
}

TEST(CropTest, EqualsTheReference) {
  const VolumeShape shapes[] = {{1, 1, 1}, {1, 1, 9}, {5, 6, 7}, {3, 17, 4}, {4, 5, 16}};
  for (const VolumeShape& shape : shapes) {
    const VolumeShape half{(shape.depth + 1) / 2, (shape.height + 1) / 2, (shape.width + 1) / 2};
    for (const VolumeShape& patch : {VolumeShape{1, 1, 1}, half, shape}) {
      for (const double share : {0.0, 0.5, 1.0}) {
        for (const int num_objects : {1, 3}) {
          SCOPED_TRACE(to_text(shape) + ", " + to_text(patch) + ", " + std::to_string(share));
          const CropOptions options{patch, share, num_objects, Connectivity::kFaces};
          expect_crops_of_reference<std::uint8_t>(shape, options);
          expect_crops_of_reference<std::int32_t>(shape, options);
        }
      }
    }
  }
}

TEST(CropTest, KeepsTheLargestObjectsOfEachLabel) {
  const Foreground foreground = make_foreground(make_options(1));
  ASSERT_EQ(foreground.classes.size(), 2);
  EXPECT_EQ(foreground.classes[0].label, 1);
  EXPECT_EQ(foreground.classes[0].objects,
            (std::vector<Component>{{1, 16 * 8 * 7, kLarge}, {1, 3 * 4 * 3, kSmall}}));
  EXPECT_EQ(foreground.classes[1].label, 4);
  EXPECT_EQ(foreground.classes[1].objects, (std::vector<Component>{{4, 5 * 3 * 3, kCorner}}));
}

/// Whether the patch at `begin` contains the box or, along an axis where that is longer, lies in
/// it.
bool is_placed_at(const VolumeBox& box, const Voxel& begin, const Voxel& patch) {
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t a = begin[axis] - box.begin[axis];
    const std::int64_t b = box.end[axis] - (begin[axis] + patch[axis]);
    if (a * b < 0) return false;
  }
  return true;
}

TEST(CropTest, PlacesPatchesAtObjectsInTheSharesAsked) {
  const CropOptions options = make_options(0.4);
  const Foreground foreground = make_foreground(options);
  std::map<std::int32_t, int> by_label;
  std::map<std::int64_t, int> by_depth;
  int num_small = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = choose_crop(options, foreground, 7, i);
    ++by_label[crop.label];
    for (int axis = 0; axis < 3; ++axis) {
      ASSERT_GE(crop.begin[axis], 0);
      ASSERT_LE(crop.begin[axis] + options.patch.sides()[axis], kShape.sides()[axis]);
    }
    if (crop.label == 0) ++by_depth[crop.begin[0]];
    if (crop.label == 4) {
      ASSERT_TRUE(is_placed_at(kCorner, crop.begin, options.patch.sides()));
    }
    if (crop.label == 1) {
      const bool at_small = is_placed_at(kSmall, crop.begin, options.patch.sides());
      ASSERT_TRUE(at_small || is_placed_at(kLarge, crop.begin, options.patch.sides()));
      num_small += at_small ? 1 : 0;
    }
  }
  EXPECT_NEAR(by_label[0], 0.6 * kDraws, 300);
  EXPECT_NEAR(by_label[1], 0.2 * kDraws, 250);
  EXPECT_NEAR(by_label[4], 0.2 * kDraws, 250);
  EXPECT_NEAR(num_small, 0.1 * kDraws, 200);
  ASSERT_EQ(by_depth.size(), 13);  // every place of 0 to 20 - 8
  for (const auto& [z, count] : by_depth) EXPECT_NEAR(count, 0.6 * kDraws / 13, 150) << z;
}

TEST(CropTest, IsAFunctionOfSeedAndIndex) {
  const CropOptions options = make_options(0.5);
  const Foreground foreground = make_foreground(options);
  const Crop first = choose_crop(options, foreground, 1, 5);
  EXPECT_EQ(choose_crop(options, foreground, 1, 5).begin, first.begin);
  int num_equal = 0;
  for (int i = 0; i < 1000; ++i) {
    num_equal += choose_crop(options, foreground, 1, i).begin ==
                 choose_crop(options, foreground, 2, i).begin;
  }
  EXPECT_LT(num_equal, 150);
  // A change of these numbers changes trainings that are repeated.
  EXPECT_EQ(to_text(first.begin), "(12, 0, 15)");
}

TEST(CropTest, CropsACaseWithoutLabelsAnywhere) {
  const std::vector<std::int32_t> labels(kShape.count());
  const CropOptions options = make_options(1);
  const Foreground foreground = find_foreground(options, kShape, labels.data());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(choose_crop(options, foreground, 1, i).label, 0);
}

TEST(CropTest, RefusesWhatCannotBeCropped) {
  const auto message = [](CropOptions options) {
    return test::error_of([&] { choose_crop(options, {{4, 4, 4}, {}}, 1, 1); }).message();
  };
  EXPECT_EQ(message({.patch = {4, 5, 4}}),
            "crop: the patch 4 x 5 x 4 does not fit into the case 4 x 4 x 4; pad the case");
  EXPECT_NE(message({.patch = {4, 0, 4}}).find("crop: the patch has shape 4 x 0 x 4"),
            std::string::npos);
  EXPECT_EQ(message({.patch = {4, 4, 4}, .foreground_share = std::nan("")}),
            "crop: foreground_share is nan, expected within [0, 1]");
  EXPECT_EQ(message({.patch = {4, 4, 4}, .num_objects = 0}),
            "crop: num_objects is 0, expected 1 or more");
}

TEST(ForegroundCacheTest, FindsEachCaseOnce) {
  std::atomic<int> num_found = 0;
  ForegroundCache cache(3, [&](std::int64_t case_index) {
    ++num_found;
    return Foreground{{case_index + 1, 1, 1}, {}};
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (const std::int64_t i : {2, 0, 2}) EXPECT_EQ(cache.at(i).shape.depth, i + 1);
      });
    }
  }
  EXPECT_EQ(num_found, 2);
  EXPECT_EQ(test::error_of([&] { cache.at(3); }).message(),
            "foreground cache: no case 3, there are 3");
}

TEST(ForegroundCacheTest, TriesAgainAfterAFailure) {
  int calls = 0;
  ForegroundCache cache(1, [&](std::int64_t) -> Foreground {
    if (++calls == 1) throw Error(ErrorKind::kIo, "away");
    return {{1, 1, 1}, {}};
  });
  EXPECT_EQ(test::error_of([&] { cache.at(0); }).message(), "away");
  EXPECT_EQ(cache.at(0).shape, (VolumeShape{1, 1, 1}));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace trireme::volume
