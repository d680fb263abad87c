#include "packs/volume/kernels/sliding_window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/packs/volume/reference/sliding_window.h"
#include "trireme/kernels/isa.h"

namespace trireme::volume {
namespace {

std::vector<float> random_values(std::int64_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct Prediction {
  std::vector<float> means;
  std::vector<std::uint8_t> labels;

  bool operator==(const Prediction&) const = default;
};

Prediction predict(const SlidingWindowOptions& options, const VolumeShape& volume,
                   std::int64_t num_classes, const std::vector<float>& logits,
                   const kernels::Spread& spread = kernels::on_caller) {
  const WindowWeights weights(options);
  const std::vector<Voxel> windows = window_positions(options, volume);
  std::vector<float> sum(num_classes * volume.count()), norm(volume.count());
  for (std::size_t w = 0; w < windows.size(); ++w) {
    weights.accumulate(volume, windows[w], num_classes,
                       logits.data() + w * num_classes * options.patch.count(), sum.data(),
                       norm.data(), spread);
  }
  Prediction prediction;
  prediction.labels.resize(volume.count());
  argmax_classes(volume, num_classes, sum.data(), prediction.labels.data(), spread);
  average_windows(volume, num_classes, norm.data(), sum.data(), spread);
  prediction.means = std::move(sum);
  return prediction;
}

TEST(SlidingWindowTest, EqualsTheDefinition) {
  constexpr std::int64_t kClasses = 3;
  for (const std::int64_t width : {1, 7, 16, 33, 50}) {
    const VolumeShape volume{9, 11, 2 * width + 1};
    const SlidingWindowOptions options{.patch = {4, 6, width}, .overlap = 0.4};
    const auto windows = window_positions(options, volume);
    const auto logits = random_values(std::ssize(windows) * kClasses * options.patch.count());
    const Prediction found = predict(options, volume, kClasses, logits);
    const auto expected = reference::window_means<double>(options, volume, kClasses, windows,
                                                          {logits.begin(), logits.end()});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found.means[i], expected[i], 2e-6) << i;
    }
    for (std::int64_t v = 0; v < volume.count(); ++v) {
      const float score = found.means[found.labels[v] * volume.count() + v];
      for (std::int64_t c = 0; c < kClasses; ++c) {
        ASSERT_GE(score + 1e-5F, found.means[c * volume.count() + v]);
      }
    }
    for (const Isa limit : {Isa::kPortable, Isa::kAvx2}) {
      const kernels::IsaLimit lowered(limit);
      EXPECT_EQ(predict(options, volume, kClasses, logits), found);
    }
    EXPECT_EQ(predict(options, volume, kClasses, logits, kernels::on_threads(3)), found);
  }
}

TEST(SlidingWindowTest, SpreadsWindowsEvenly) {
  const auto along = [](std::int64_t side, std::int64_t patch, double overlap) {
    std::vector<std::int64_t> positions;
    for (const Voxel& v :
         window_positions({.patch = {1, 1, patch}, .overlap = overlap}, {1, 1, side})) {
      positions.push_back(v[2]);
    }
    return positions;
  };
  using Positions = std::vector<std::int64_t>;
  EXPECT_EQ(along(128, 128, 0.5), (Positions{0}));
  EXPECT_EQ(along(129, 128, 0.5), (Positions{0, 1}));
  EXPECT_EQ(along(256, 128, 0.5), (Positions{0, 64, 128}));
  EXPECT_EQ(along(100, 48, 0.5), (Positions{0, 17, 35, 52}));
  EXPECT_EQ(along(10, 4, 0), (Positions{0, 3, 6}));
  EXPECT_EQ(along(5, 3, 1 - 1e-12), (Positions{0, 1, 2}));
}

TEST(SlidingWindowTest, WeighsByAGaussian) {
  const SlidingWindowOptions options{.patch = {8, 9, 16}};
  const WindowWeights weights(options);
  for (std::int64_t i = 0; i < options.patch.count(); ++i) {
    const Voxel voxel = options.patch.voxel_at(i);
    ASSERT_NEAR(weights.at(voxel[0], voxel[1], voxel[2]),
                reference::window_weight<double>(options, voxel), 1e-7);
  }
}

TEST(SlidingWindowTest, PicksTheFirstOfEqualScores) {
  constexpr VolumeShape kVolume{1, 1, 3};
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const std::vector<float> scores = {kLeast, 1, 0, kLeast, 1, -0.0F, kLeast, 2, 0};
  std::vector<std::uint8_t> labels(3, 9);
  argmax_classes(kVolume, 3, scores.data(), labels.data());
  EXPECT_EQ(labels, (std::vector<std::uint8_t>{0, 2, 0}));
}

TEST(SlidingWindowTest, RefusesBadInput) {
  const auto options_error = [](const SlidingWindowOptions& options) {
    return test::error_of([&] { window_positions(options, {5, 5, 5}); }).message();
  };
  EXPECT_EQ(options_error({.patch = {5, 6, 5}}),
            "sliding window: the patch 5 x 6 x 5 does not fit into the volume 5 x 5 x 5; pad the "
            "volume");
  EXPECT_NE(options_error({.patch = {5, 0, 5}}).find("the patch has shape 5 x 0 x 5"),
            std::string::npos);
  EXPECT_NE(options_error({.patch = {5, 5, 5}, .overlap = 1}).find("overlap is 1.000000"),
            std::string::npos);
  EXPECT_NE(options_error({.patch = {5, 5, 5}, .sigma = std::nan("")}).find("sigma is nan"),
            std::string::npos);
  const WindowWeights weights({.patch = {2, 2, 2}});
  std::vector<float> logits(8, 1), sum(27), norm(27);
  const auto add = [&](const Voxel& begin, std::int64_t num_classes) {
    weights.accumulate({3, 3, 3}, begin, num_classes, logits.data(), sum.data(), norm.data());
  };
  EXPECT_EQ(test::error_of([&] { add({0, 2, 0}, 1); }).message(),
            "sliding window: a patch 2 x 2 x 2 at (0, 2, 0) is not within the volume 3 x 3 x 3");
  EXPECT_EQ(test::error_of([&] { add({0, 0, 0}, 0); }).message(),
            "sliding window: 0 classes, expected 1 to 1048576");
  add({0, 0, 0}, 1);
  EXPECT_EQ(
      test::error_of([&] { average_windows({3, 3, 3}, 1, norm.data(), sum.data()); }).message(),
      "sliding window: voxel (0, 0, 2) is in no window");
  sum.assign(27, 0);
  sum[14] = std::nanf("");
  std::vector<std::uint8_t> labels(27);
  EXPECT_EQ(
      test::error_of([&] { argmax_classes({3, 3, 3}, 1, sum.data(), labels.data()); }).message(),
      "sliding window: voxel (1, 1, 2) has score NaN of class 0");
}

}  // namespace
}  // namespace trireme::volume
