#include "packs/volume/metrics/dice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "trireme/kernels/isa.h"

namespace trireme::volume {
namespace {

using volume::VolumeShape;

/// Labels in runs of about `run` voxels.
template <typename Label>
std::vector<Label> random_labels(std::int64_t n, int num_classes, int run, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Label> labels(n);
  Label label = 0;
  for (Label& each : labels) {
    if (random() % run == 0) label = static_cast<Label>(random() % num_classes);
    each = label;
  }
  return labels;
}

template <typename Label>
void expect_definition(const VolumeShape& shape, int num_classes, int run) {
  const auto predicted = random_labels<Label>(shape.count(), num_classes, run, 1);
  const auto expected = random_labels<Label>(shape.count(), num_classes, run, 2);
  const auto found = dice_counts(num_classes, VolumeView<Label>{shape, predicted},
                                 VolumeView<Label>{shape, expected});
  ASSERT_EQ(found.size(), num_classes);
  for (int c = 0; c < num_classes; ++c) {
    DiceCounts counts;
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const bool p = predicted[i] == static_cast<Label>(c),
                 t = expected[i] == static_cast<Label>(c);
      counts += {p && t ? 1U : 0U, p ? 1U : 0U, t ? 1U : 0U};
    }
    EXPECT_EQ(found[c], counts) << to_text(shape) << ", class " << c;
  }
}

TEST(DiceTest, CountsVoxels) {
  for (const std::int64_t width : {1, 63, 64, 65, 200}) {
    for (const int run : {1, 3, 500}) {
      expect_definition<std::uint8_t>({2, 3, width}, 3, run);
      expect_definition<std::uint8_t>({1, 1, width}, 256, run);
      expect_definition<std::int32_t>({3, 1, width}, 1000, run);
    }
  }
}

TEST(DiceTest, CountsDoNotDependOnThreads) {
  const VolumeShape shape{11, 250, 301};  // more than three parts
  const auto predicted = random_labels<std::uint8_t>(shape.count(), 5, 9, 3);
  auto expected = random_labels<std::uint8_t>(shape.count(), 5, 9, 4);
  const auto count = [&](const kernels::Spread& spread) {
    return dice_counts(5, VolumeView<std::uint8_t>{shape, predicted},
                       VolumeView<std::uint8_t>{shape, expected}, spread);
  };
  const auto alone = count(kernels::on_caller);
  std::uint64_t num_voxels = 0;
  for (const DiceCounts& counts : alone) num_voxels += counts.expected;
  EXPECT_EQ(num_voxels, shape.count());
  for (const int num_threads : {1, 2, 3}) {
    EXPECT_EQ(count(kernels::on_threads(num_threads)), alone) << num_threads << " threads";
  }
  expected[700'000] = 5;
  expected[800'000] = 6;
  const Error error = test::error_of([&] { count(kernels::on_threads(3)); });
  EXPECT_NE(error.message().find("label 5"), std::string::npos) << error.message();
}

TEST(DiceTest, IsTwiceTheIntersectionOverBoth) {
  const DiceCounts counts{.both = 3, .predicted = 5, .expected = 4};
  EXPECT_DOUBLE_EQ(counts.dice(), 6.0 / 9);
  EXPECT_DOUBLE_EQ(counts.iou(), 3.0 / 6);
  EXPECT_DOUBLE_EQ(counts.dice(1), 7.0 / 10);
  EXPECT_TRUE(std::isnan(DiceCounts{}.dice()));
  EXPECT_EQ(DiceCounts{}.dice(1e-6), 1);
  EXPECT_DOUBLE_EQ(mean_dice(std::vector<DiceCounts>{counts, {}, {0, 1, 1}}), 3.0 / 9);
  EXPECT_TRUE(std::isnan(mean_dice({})));
}

TEST(DiceTest, SumsProbabilities) {
  constexpr int kClasses = 3;
  for (const VolumeShape& shape : {VolumeShape{1, 1, 1}, VolumeShape{1, 1, 511},
                                   VolumeShape{1, 3, 171}, VolumeShape{2, 512, 513}}) {
    const std::int64_t n = shape.count();
    const auto labels = random_labels<std::uint8_t>(n, kClasses, 5, 3);
    std::vector<float> p(kClasses * n);
    std::mt19937 random(4);
    for (float& each : p) each = static_cast<float>(random()) * 0x1p-32F;
    const auto sums = [&](const kernels::Spread& spread) {
      return soft_dice_sums(kClasses, {shape, p}, {shape, labels}, spread);
    };
    const auto found = sums(kernels::on_caller);
    const auto same = [&](const std::vector<SoftDiceSums>& others) {
      for (int c = 0; c < kClasses; ++c) {
        EXPECT_EQ(found[c].both, others[c].both);
        EXPECT_EQ(found[c].predicted, others[c].predicted);
        EXPECT_EQ(found[c].squares, others[c].squares);
        EXPECT_EQ(found[c].expected, others[c].expected);
      }
    };
    for (int c = 0; c < kClasses; ++c) {
      SoftDiceSums expected;
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = p[c * n + i], t = labels[i] == c ? 1 : 0;
        expected += {value * t, value, value * value, t};
      }
      EXPECT_NEAR(found[c].dice(), expected.dice(), 1e-12);
      EXPECT_NEAR(found[c].dice_of_squares(1e-6), expected.dice_of_squares(1e-6), 1e-12);
    }
    same(sums(kernels::on_threads(3)));
    for (const Isa limit : {Isa::kPortable, Isa::kAvx2}) {
      const kernels::IsaLimit lowered(limit);
      same(sums(kernels::on_caller));
    }
  }
}

TEST(DiceTest, OfHardProbabilitiesIsThatOfLabels) {
  constexpr VolumeShape kShape{3, 4, 50};
  const auto predicted = random_labels<std::uint8_t>(kShape.count(), 2, 3, 1);
  const auto expected = random_labels<std::uint8_t>(kShape.count(), 2, 3, 2);
  std::vector<float> p(2 * kShape.count());
  for (std::int64_t i = 0; i < kShape.count(); ++i) p[predicted[i] * kShape.count() + i] = 1;
  const auto soft = soft_dice_sums(2, {kShape, p}, {kShape, expected});
  const auto hard = dice_counts(2, VolumeView<std::uint8_t>{kShape, predicted},
                                VolumeView<std::uint8_t>{kShape, expected});
  for (int c = 0; c < 2; ++c) EXPECT_EQ(soft[c].dice(), hard[c].dice());
}

TEST(DiceTest, RefusesBadInput) {
  std::vector<std::uint8_t> labels(8);
  std::vector<float> p(16, 0.5F);
  using Labels = VolumeView<std::uint8_t>;
  const auto hard_error = [&](const VolumeShape& a, const VolumeShape& b) {
    return test::error_of([&] { dice_counts(2, Labels{a, labels}, Labels{b, labels}); }).message();
  };
  const auto soft_error = [&] {
    return test::error_of([&] { soft_dice_sums(2, {{2, 2, 2}, p}, {{2, 2, 2}, labels}); })
        .message();
  };
  EXPECT_EQ(hard_error({2, 2, 2}, {2, 1, 4}),
            "dice: predicted has shape 2 x 2 x 2, expected has 2 x 1 x 4");
  EXPECT_EQ(hard_error({2, 2, 2}, {2, 2, 3}),
            "dice: expected has 8 values, expected 12 for shape 2 x 2 x 3");
  EXPECT_NE(hard_error({0, 2, 2}, {2, 2, 2}).find("dice: predicted has shape 0 x 2 x 2"),
            std::string::npos);
  labels[5] = 2;
  EXPECT_EQ(hard_error({2, 2, 2}, {2, 2, 2}),
            "dice: predicted has label 2 at (1, 0, 1), expected 0 to 1");
  EXPECT_EQ(soft_error(), "dice: expected has label 2 at (1, 0, 1), expected 0 to 1");
  p[11] = std::nanf("");
  EXPECT_EQ(soft_error(), "dice: the probability of class 1 at (0, 1, 1) is nan");
  const std::vector<std::int32_t> negative = {0, -1};
  const VolumeView<std::int32_t> view{{1, 1, 2}, negative};
  EXPECT_EQ(test::error_of([&] { dice_counts(2, view, view); }).message(),
            "dice: predicted has label -1 at (0, 0, 1), expected 0 to 1");
}

}  // namespace
}  // namespace trireme::volume
