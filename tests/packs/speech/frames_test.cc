#include "packs/speech/kernels/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "packs/speech/data/spec_augment.h"
#include "tests/base/error_of.h"

namespace trireme::speech {
namespace {

using test::error_of;
using testing::ElementsAre;

TEST(Frames, EachFeatureIsNormalisedOverTheFrames) {
  // Features 1, 3, 5 and a constant; deviations by N - 1: 2 and 0.
  std::vector<float> x = {1, 7, 3, 7, 5, 7};
  normalize_per_feature({.num_frames = 3, .num_features = 2}, x.data(), 0.5);
  EXPECT_THAT(x, ElementsAre(-0.8F, 0, 0, 0, 0.8F, 0));
  std::vector<float> one = {4, -4};
  normalize_per_feature({.num_frames = 1, .num_features = 2}, one.data());
  EXPECT_THAT(one, ElementsAre(0, 0));
}

TEST(Frames, AreStackedAndSubsampled) {
  const std::vector<float> x = {1, -1, 2, -2, 3, -3, 4, -4};
  const auto stacked = [&](FrameStacking stacking) {
    std::vector<float> out(
        static_cast<std::size_t>(stacked_frames(4, stacking) * stacking.stack * 2), 9);
    stack_frames({.num_frames = 4, .num_features = 2}, stacking, x.data(), out.data());
    return out;
  };
  EXPECT_EQ(stacked({1, 1}), x);
  EXPECT_THAT(stacked({3, 3}), ElementsAre(1, -1, 2, -2, 3, -3, 4, -4, 0, 0, 0, 0));
  EXPECT_THAT(stacked({2, 3}), ElementsAre(1, -1, 2, -2, 4, -4, 0, 0));
  EXPECT_THAT(stacked({1, 2}), ElementsAre(1, -1, 3, -3));
  EXPECT_EQ(stacked_frames(1, {3, 3}), 1);
  EXPECT_EQ(stacked_frames(6, {3, 3}), 2);
}

/// Which of 100 frames and 16 features are 0: whole frames, whole features.
struct Masked {
  std::set<std::int64_t> frames, features;
  std::int64_t others = 0;
};

Masked masked_by(const SpecAugmentOptions& options, std::uint64_t stream) {
  constexpr std::int64_t kFrames = 100, kFeatures = 16;
  std::vector<float> x(kFrames * kFeatures, 1);
  mask_frames(options, stream, {kFrames, kFeatures}, x.data());
  const auto at = [&](std::int64_t t, std::int64_t f) {
    return x[static_cast<std::size_t>(t * kFeatures + f)] == 0;
  };
  Masked masked;
  for (std::int64_t t = 0; t < kFrames; ++t) {
    bool is_all = true;
    for (std::int64_t f = 0; f < kFeatures; ++f) is_all = is_all && at(t, f);
    if (is_all) masked.frames.insert(t);
  }
  for (std::int64_t f = 0; f < kFeatures; ++f) {
    bool is_all = true;
    for (std::int64_t t = 0; t < kFrames; ++t) is_all = is_all && at(t, f);
    if (is_all) masked.features.insert(f);
  }
  for (std::int64_t t = 0; t < kFrames; ++t) {
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      masked.others += at(t, f) && !masked.frames.contains(t) && !masked.features.contains(f);
    }
  }
  return masked;
}

TEST(SpecAugment, MasksAreBandsAndSpansOfEveryWidthAndPlace) {
  std::set<std::size_t> widths, lengths;
  std::set<std::int64_t> first_bands, first_frames;
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    const Masked masked =
        masked_by({.n_time_masks = 1, .n_freq_masks = 1, .freq_mask_param = 4, .p = 0.05}, stream);
    ASSERT_EQ(masked.others, 0);
    widths.insert(masked.features.size());
    lengths.insert(masked.frames.size());
    if (!masked.features.empty()) {
      first_bands.insert(*masked.features.begin());
      ASSERT_EQ(*masked.features.rbegin() - *masked.features.begin() + 1,
                std::ssize(masked.features));
    }
    if (!masked.frames.empty()) {
      first_frames.insert(*masked.frames.begin());
      ASSERT_EQ(*masked.frames.rbegin() - *masked.frames.begin() + 1, std::ssize(masked.frames));
    }
  }
  EXPECT_THAT(widths, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(lengths, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(first_bands.size(), 16U);
  EXPECT_EQ(first_frames.size(), 100U);
}

TEST(SpecAugment, TimeMasksHaveTheShorterOfBothLimits) {
  std::size_t most = 0;
  for (std::uint64_t stream = 0; stream < 500; ++stream) {
    const SpecAugmentOptions options{
        .n_time_masks = 1, .time_mask_param = 7, .n_freq_masks = 0, .p = 0.5};
    most = std::max(most, masked_by(options, stream).frames.size());
  }
  EXPECT_EQ(most, 7U);
  EXPECT_TRUE(masked_by({.n_freq_masks = 0, .p = 0.009}, 1).frames.empty());
  // As many masks as were asked for, and wider than there is room.
  EXPECT_GT(masked_by({.n_time_masks = 50, .p = 0.1}, 1).frames.size(), 50U);
  EXPECT_EQ(masked_by({.n_freq_masks = 40, .freq_mask_param = 1000}, 1).features.size(), 16U);
}

TEST(SpecAugment, OptionsOutOfRangeAreNamed) {
  for (const auto& [options, name] :
       {std::pair{SpecAugmentOptions{.n_time_masks = -1}, "n_time_masks"},
        {SpecAugmentOptions{.time_mask_param = -1}, "time_mask_param"},
        {SpecAugmentOptions{.n_freq_masks = 1 << 21}, "n_freq_masks"},
        {SpecAugmentOptions{.freq_mask_param = -5}, "freq_mask_param"},
        {SpecAugmentOptions{.p = 1.5}, "p is"},
        {SpecAugmentOptions{.p = NAN}, "p is"}}) {
    const Error error = error_of([&] { check(options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace trireme::speech
