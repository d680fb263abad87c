#include "packs/vision/kernels/roi_align.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "packs/vision/kernels/roi_taps.h"
#include "tests/kernels/random_numbers.h"
#include "tests/packs/vision/reference/roi_align.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::vision {
namespace {

using namespace kernels;

/// Regions that lie inside, across every edge and outside of the map, tiny and inverted ones too.
std::vector<float> random_regions(const FeatureShape& shape, std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> y(-8, static_cast<float>(shape.height) + 8);
  std::uniform_real_distribution<float> x(-8, static_cast<float>(shape.width) + 8);
  std::vector<float> regions;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x1 = x(random), y1 = y(random);
    const bool is_tiny = i % 5 == 0;
    regions.insert(regions.end(), {static_cast<float>(i % shape.batch), x1, y1,
                                   is_tiny ? x1 + 0.1F : x(random), is_tiny ? y1 : y(random)});
  }
  return regions;
}

struct Setting {
  FeatureShape shape;
  RoiAlignSettings options;
};

std::vector<Setting> settings() {
  return {{{2, 13, 17, 5}, {.pooled_height = 3, .pooled_width = 4, .num_samples = 2}},
          {{1, 9, 8, 64}, {.num_samples = 1, .is_aligned = true}},
          {{1, 20, 21, 67}, {.pooled_height = 2, .pooled_width = 2, .scale = 0.5}},
          {{3, 1, 1, 16}, {.num_samples = 2, .is_aligned = true}}};
}

TEST(RoiAlignTest, ForwardIsTheReference) {
  for (const auto& [shape, options] : settings()) {
    const auto features =
        random_numbers<float>(shape.batch * shape.height * shape.width * shape.channels, 1, 0);
    const std::vector<float> regions = random_regions(shape, 40, 2);
    const std::int64_t size = 40 * options.pooled_height * options.pooled_width * shape.channels;
    std::vector<float> expected(size);
    reference::roi_align(options, shape, features.data(), regions.data(), 40, expected.data());
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
      const kernels::IsaLimit limit(isa);
      std::vector<float> out(size, 7);
      roi_align(options, shape, features.data(), regions.data(), 40, out.data(),
                kernels::on_threads(2));
      for (std::int64_t i = 0; i < size; ++i) {
        ASSERT_NEAR(out[i], expected[i], 2e-6 * std::max(1.0F, std::abs(expected[i]))) << i;
      }
    }
  }
}

TEST(RoiAlignTest, BackwardIsTheReferenceAndDoesNotDependOnThreads) {
  for (const auto& [shape, options] : settings()) {
    const std::vector<float> regions = random_regions(shape, 30, 3);
    const std::int64_t map_size = shape.batch * shape.height * shape.width * shape.channels;
    const auto gradient = random_numbers<float>(
        30 * options.pooled_height * options.pooled_width * shape.channels, 4, 0);
    std::vector<double> expected(map_size, 1);
    reference::roi_align_backward(options, shape, kernels::widened(gradient).data(),
                                  kernels::widened(regions).data(), 30, expected.data());
    std::vector<float> one(map_size, 1), two(map_size, 1);
    roi_align_backward(options, shape, gradient.data(), regions.data(), 30, one.data());
    roi_align_backward(options, shape, gradient.data(), regions.data(), 30, two.data(),
                       kernels::on_threads(2));
    EXPECT_EQ(one, two);
    std::ranges::fill(two, 1.0F);
    roi_align_backward(options, shape, gradient.data(), regions.data(), 30, two.data(),
                       kernels::on_threads(3));
    EXPECT_EQ(one, two);
    for (std::int64_t i = 0; i < map_size; ++i) {
      ASSERT_NEAR(one[i], expected[i], 1e-4 * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }
}

TEST(RoiAlignTest, TheReferenceBackwardIsItsDerivative) {
  const auto [shape, options] = settings().front();
  auto features =
      kernels::widened(random_numbers<float>(shape.batch * shape.height * shape.width * 5, 5, 0));
  const std::vector<double> regions = kernels::widened(random_regions(shape, 6, 6));
  const std::int64_t size = 6 * options.pooled_height * options.pooled_width * 5;
  const std::vector<double> weight = kernels::widened(random_numbers<float>(size, 7, 0));
  std::vector<double> gradient(features.size());
  reference::roi_align_backward(options, shape, weight.data(), regions.data(), 6, gradient.data());
  const auto loss = [&] {
    std::vector<double> out(size);
    reference::roi_align(options, shape, features.data(), regions.data(), 6, out.data());
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += out[i] * weight[i];
    return sum;
  };
  for (std::size_t i = 0; i < features.size(); i += 37) {
    const double before = features[i];
    features[i] = before + 1e-3;
    const double above = loss();
    features[i] = before - 1e-3;
    EXPECT_NEAR((above - loss()) / 2e-3, gradient[i], 1e-8);
    features[i] = before;
  }
}

/// What a map of 4 x 4 says to a region, in both directions.
std::string roi_refusal(const RoiAlignSettings& options, const std::vector<float>& region) {
  const FeatureShape shape{2, 4, 4, 1};
  std::vector<float> features(32), out(49);
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return "none";
  };
  const std::string forward =
      message_of([&] { roi_align(options, shape, features.data(), region.data(), 1, out.data()); });
  const std::string backward = message_of(
      [&] { roi_align_backward(options, shape, out.data(), region.data(), 1, features.data()); });
  EXPECT_EQ(forward, backward);
  return forward;
}

TEST(RoiAlignTest, RefusesARegionThatIsNowhere) {
  for (const float batch : {2.0F, -1.0F, std::nanf("")}) {
    EXPECT_THAT(roi_refusal({}, {batch, 0, 0, 1, 1}), testing::HasSubstr("region 0"));
  }
}

TEST(RoiAlignTest, RefusesARegionThatScalingMakesInfinite) {
  const auto refused = testing::HasSubstr("region 0");
  EXPECT_THAT(roi_refusal({.num_samples = 2}, {0, -3e38F, -3e38F, 3e38F, 3e38F}), refused);
  EXPECT_THAT(roi_refusal({.scale = 4, .num_samples = 2}, {0, 0, 0, 3e38F, 1}), refused);
  EXPECT_THAT(
      roi_refusal({.scale = 4, .num_samples = 2, .is_aligned = true}, {0, 3e38F, 0, 3e38F, 1}),
      refused);
  EXPECT_THAT(roi_refusal({}, {0, 0, 0, 1, 1e30F}), refused);  // samples that nobody can count
  EXPECT_EQ(roi_refusal({.num_samples = 2}, {0, -3e37F, 0, 3e37F, 1}), "none");
}

TEST(RoiAlignTest, RefusesAScaleThatIsNone) {
  for (const double scale : {std::nan(""), 1e300, -1.0, 0.0}) {
    EXPECT_THAT(roi_refusal({.scale = scale}, {0, 0, 0, 1, 1}), testing::HasSubstr("scale"));
  }
  EXPECT_THAT(roi_refusal({.pooled_width = 0}, {0, 0, 0, 1, 1}), testing::HasSubstr("7 x 0"));
}

TEST(RoiAlignTest, ASampleThatIsNowhereHasNoTap) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float start : {std::nanf(""), kInfinity, -kInfinity, -1.5F, 9.0F}) {
    EXPECT_FALSE(internal::tap_of({start, 1, 2}, 0, 0, 9).is_inside()) << start;
  }
  EXPECT_FALSE(internal::tap_of({-0.5F, 1, 1}, 0, 0, 0).is_inside());  // a map without pixels
  EXPECT_TRUE(internal::tap_of({8.5F, 1, 1}, 0, 0, 9).is_inside());
}

TEST(RoiAlignTest, TheSamplesOnAMapAreThoseInside) {
  std::mt19937 random(11);
  const auto draw = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t size = i % 17;
    const internal::RoiAxis axis{draw(-40, 40), draw(-30, 30), i % 31};
    for (const std::int64_t p : {0, 1, 6}) {
      const auto [first, end] = internal::samples_on_map(axis, p, size);
      for (std::int64_t s = 0; s < axis.num_samples; ++s) {
        const bool is_inside = internal::tap_of(axis, p, s, size).is_inside();
        ASSERT_EQ(is_inside, size > 0 && s >= first && s < end) << i << ", sample " << s;
      }
    }
  }
}

/// One proposal that nobody clipped: a sample for each of 4e14 pixels, of which 81 are there.
TEST(RoiAlignTest, ARegionFarLargerThanItsMapCostsWhatTheMapDoes) {
  const FeatureShape shape{1, 8, 8, 3};
  const RoiAlignSettings options{.pooled_height = 3, .pooled_width = 3};
  const std::vector<float> region = {0, -1e7F, -1e7F, 1e7F, 1e7F};
  const internal::RoiPlace place = internal::roi_place(options, shape, region.data());
  EXPECT_GT(place.y.num_samples, 6'000'000);
  std::int64_t num_samples = 0;
  for (std::int64_t p = 0; p < 3; ++p) {
    const auto [first, end] = internal::samples_on_map(place.y, p, shape.height);
    num_samples += end - first;
  }
  EXPECT_GE(num_samples, 8);
  EXPECT_LE(num_samples, 19);
  const std::vector<float> features(8 * 8 * 3, 1e9F);
  std::vector<float> out(9 * 3), gradient(8 * 8 * 3);
  roi_align(options, shape, features.data(), region.data(), 1, out.data());
  const auto share = static_cast<float>(num_samples) / static_cast<float>(place.y.num_samples);
  EXPECT_NEAR(out[4 * 3], 1e9F * share * share, 1e-4F * 1e9F * share * share);
  EXPECT_EQ(out[0], 0);
  roi_align_backward(options, shape, out.data(), region.data(), 1, gradient.data());
  EXPECT_GT(gradient[0], 0);
}

}  // namespace
}  // namespace trireme::vision
