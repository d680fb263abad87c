#include "packs/speech/data/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/error_of.h"
#include "trireme/kernels/spread.h"

namespace trireme::speech {
namespace {

using test::error_of;

std::vector<float> tone(double hz, double rate, std::int64_t count) {
  std::vector<float> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    samples.push_back(
        static_cast<float>(0.5 * std::sin(2 * M_PI * hz * static_cast<double>(i) / rate)));
  }
  return samples;
}

TEST(Resample, AToneIsTheSameToneAtAnotherRate) {
  for (const auto& [from, to] : {std::pair{8000.0, 16000.0},
                                 {16000.0, 8000.0},
                                 {44100.0, 16000.0},
                                 {48000.0, 16000.0},
                                 {16000.0, 14400.0},
                                 {16000.0, 17600.0}}) {
    for (const auto quality : {ResampleQuality::kHigh, ResampleQuality::kVeryHigh}) {
      const auto count = static_cast<std::int64_t>(from);  // a second
      const auto made = resample(tone(440, from, count), {from, to, quality});
      const auto expected = tone(440, to, std::ssize(made));
      ASSERT_EQ(std::ssize(made), static_cast<std::int64_t>(to));
      // Without the ends, beyond which it is silent.
      for (std::size_t i = 500; i + 500 < made.size(); ++i) {
        ASSERT_NEAR(made[i], expected[i], 1e-5) << from << " " << to << " " << i;
      }
    }
  }
}

TEST(Resample, WhatTheLowerRateCannotHoldIsTakenOut) {
  const auto made = resample(tone(6000, 16000, 16000), {16000, 8000});
  for (std::size_t i = 500; i + 500 < made.size(); ++i) ASSERT_NEAR(made[i], 0, 1e-5);
}

TEST(Resample, LengthsAreRoundedUpAndEverySampleIsMade) {
  for (const auto& [from, to] : {std::pair{44100, 16000},
                                 {48000, 16000},
                                 {14400, 16000},
                                 {8000, 16000},
                                 {22050, 16000},
                                 {16000, 8000},
                                 {96000, 8000}}) {
    for (const std::int64_t count : {0, 1, 2, 3, 7, 100, 1001, 16001}) {
      const ResampleOptions options{static_cast<double>(from), static_cast<double>(to)};
      const auto made = resample(tone(300, from, count), options);
      EXPECT_EQ(std::ssize(made), (count * to + from - 1) / from) << from << " " << count;
    }
  }
  EXPECT_EQ(resample(std::vector<float>{1, 2}, {7, 7}), (std::vector<float>{1, 2}));
}

TEST(Resample, ThreadsAndNeighboursDoNotChangeBits) {
  const auto sound = tone(440, 44100, 30000);
  const auto expected = resample(sound, {44100, 16000});
  std::vector<std::vector<float>> made(8);
  kernels::on_threads(4)(8, [&](std::int64_t i) {
    resample(tone(100, 8000, 10 * i), {8000, 16000});
    made[static_cast<std::size_t>(i)] = resample(sound, {44100, 16000});
  });
  EXPECT_THAT(made, testing::Each(expected));
}

TEST(Resample, RatesThatAreNoneAreRefused) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : {std::pair{0.0, 16000.0},
                                 {16000.0, 0.0},
                                 {-1.0, 1.0},
                                 {1.0, 1e4},
                                 {NAN, 1.0},
                                 {infinity, 1.0},
                                 {infinity, infinity}}) {
    const Error error = error_of([&] { resample(std::vector<float>{1}, {from, to}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << from << " " << to;
  }
}

}  // namespace
}  // namespace trireme::speech
