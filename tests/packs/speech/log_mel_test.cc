#include "packs/speech/kernels/log_mel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/base/error_of.h"
#include "tests/packs/speech/reference/log_mel.h"
#include "trireme/kernels/isa.h"

namespace trireme::speech {
namespace {

using test::error_of;
using testing::HasSubstr;

/// Noise with a tone that rises, as loud as speech.
std::vector<float> make_sound(std::int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.01F);
  std::vector<float> sound(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / 16000;
    sound[static_cast<std::size_t>(i)] =
        noise(random) + 0.3F * static_cast<float>(std::sin(2 * M_PI * (200 * t + 3000 * t * t)));
  }
  return sound;
}

std::vector<float> features_of(const LogMel& log_mel, const std::vector<float>& sound) {
  const std::int64_t frames = log_mel.num_frames(std::ssize(sound));
  std::vector<float> out(static_cast<std::size_t>(frames * log_mel.options().n_mels));
  log_mel(sound, out);
  return out;
}

/// How far f32 may be from number i: each bin has errors of 2^-24 or so of the frame's loudest one, by amplitude.
double rounding(const std::vector<double>& expected, std::size_t i, const MelOptions& options) {
  const auto mels = static_cast<std::size_t>(options.n_mels);
  const auto frame = expected.begin() + static_cast<std::ptrdiff_t>(i / mels * mels);
  const double above = *std::max_element(frame, frame + options.n_mels) - expected[i];
  return 2e-6 + 2e-7 * std::exp(above / options.power);
}

TEST(LogMel, IsTheFormulaForEveryTransformAndOption) {
  const MelOptions rnnt{.n_fft = 512, .win_length = 320, .hop_length = 160, .n_mels = 80};
  MelOptions slaney = rnnt;
  slaney.norm = MelNorm::kSlaney;
  slaney.mel_scale = MelScale::kSlaney;
  slaney.f_min = 20;
  slaney.f_max = 7600;
  MelOptions magnitude = rnnt;
  magnitude.power = 1;
  magnitude.center = false;
  magnitude.log_offset = 0.5;
  MelOptions constant = rnnt;
  constant.pad_mode = PadMode::kConstant;
  std::vector<MelOptions> all = {{}, rnnt, slaney, magnitude, constant};
  // Radices of each kind, alone and together; 4 does not divide the last ones; windows that begin anywhere.
  for (const std::int64_t n : {4, 8, 12, 20, 64, 96, 122, 210, 250, 390, 1024}) {
    all.push_back({.n_fft = n, .win_length = n - n / 5, .hop_length = 61, .n_mels = 5});
  }
  for (const MelOptions& options : all) {
    const LogMel log_mel(options);
    const auto sound = make_sound(2111);
    const auto made = features_of(log_mel, sound);
    const auto expected = reference::log_mel(log_mel.options(), sound);
    ASSERT_EQ(made.size(), expected.size()) << options.n_fft;
    for (std::size_t i = 0; i < made.size(); ++i) {
      ASSERT_NEAR(made[i], expected[i], rounding(expected, i, log_mel.options()))
          << "n_fft " << options.n_fft << ", number " << i;
    }
  }
}

TEST(LogMel, BitsDependOnAFramesSamplesAlone) {
  const LogMel log_mel(
      {.n_fft = 240, .win_length = 200, .hop_length = 80, .n_mels = 40, .center = false});
  const auto sound = make_sound(240 + 80 * 299);
  const auto whole = features_of(log_mel, sound);
  ASSERT_EQ(whole.size(), 300U * 40);
  for (const std::int64_t first : {0, 1, 15, 17, 298}) {
    for (const std::int64_t count : {1, 2, 16, 33}) {
      const auto begin = sound.begin() + first * 80;
      const std::int64_t samples = std::min(240 + 80 * (count - 1), sound.end() - begin);
      const auto part = features_of(log_mel, {begin, begin + samples});
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first * 40)) << first;
    }
  }
}

TEST(LogMel, EveryProcessorAndThreadHasTheSameBits) {
  for (const std::int64_t n : {400, 512}) {
    const LogMel log_mel({.n_fft = n});
    const auto sound = make_sound(n / 2 * 700);
    const auto best = features_of(log_mel, sound);
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2}) {
      const kernels::IsaLimit limit(isa);
      EXPECT_EQ(features_of(log_mel, sound), best) << n;
    }
    std::vector<float> out(best.size());
    log_mel(sound, out, kernels::on_threads(3));
    EXPECT_EQ(out, best) << n;
  }
}

TEST(LogMel, SilenceIsTheOffsetAndQuietFramesStayApartFromLoudOnes) {
  const LogMel log_mel({.hop_length = 400, .n_mels = 20, .center = false});
  std::vector<float> sound(800);
  for (std::size_t i = 400; i < 800; ++i) sound[i] = i % 2 == 0 ? 0.9F : -0.9F;
  auto made = features_of(log_mel, sound);
  EXPECT_THAT(std::vector(made.begin(), made.begin() + 20),
              testing::Each(static_cast<float>(std::log(1e-6F))));
  const LogMel no_offset({.hop_length = 400, .n_mels = 20, .center = false, .log_offset = 0});
  made = features_of(no_offset, sound);
  EXPECT_EQ(made[3], -INFINITY);
  // So quiet that a power is no normal number.
  for (float& sample : sound) sample = 1e-20F;
  for (const float number : features_of(no_offset, sound)) EXPECT_LT(number, -80);
}

TEST(LogMel, LogarithmIsRightToAnUlp) {
  // A transform of two samples and one filter: out is the log of the offset, where there is no sound.
  for (int exponent = -149; exponent < 128; ++exponent) {
    for (const float mantissa : {1.0F, 1.2F, 1.41421F, 1.41422F, 1.9999F}) {
      const float x = std::ldexp(mantissa, exponent);
      const LogMel log_mel({.sample_rate = 8, .n_fft = 4, .n_mels = 1, .log_offset = x});
      const float made = features_of(log_mel, std::vector<float>(4))[0];
      const auto exact = std::log(static_cast<double>(x));
      const float ulp = std::nextafter(std::abs(static_cast<float>(exact)), INFINITY) -
                        std::abs(static_cast<float>(exact));
      ASSERT_NEAR(made, exact, ulp) << x;
    }
  }
}

TEST(LogMel, OptionsOutOfRangeAreNamed) {
  const auto message = [](const MelOptions& options) {
    const Error error = error_of([&] { const LogMel log_mel(options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(message({.n_fft = 401}), HasSubstr("n_fft is even"));
  EXPECT_THAT(message({.n_fft = 2 * 67}), HasSubstr("prime factors up to 61; got 134"));
  EXPECT_THAT(message({.win_length = 401}), HasSubstr("win_length is from 1 to n_fft; got 401"));
  EXPECT_THAT(message({.hop_length = -1}), HasSubstr("hop_length"));
  EXPECT_THAT(message({.f_min = 9000}), HasSubstr("f_max is above f_min"));
  EXPECT_THAT(message({.f_max = 8000.5}), HasSubstr("f_max"));
  EXPECT_THAT(message({.n_mels = 0}), HasSubstr("n_mels"));
  EXPECT_THAT(message({.power = 1.5}), HasSubstr("power is 1 or 2; got 1.5"));
  EXPECT_THAT(message({.log_offset = -1}), HasSubstr("log_offset"));
  const LogMel log_mel({});
  EXPECT_THAT(error_of([&] { log_mel.num_frames(200); }).message(),
              HasSubstr("expected 201 samples or more, got 200"));
  std::vector<float> samples(201), out(127);
  EXPECT_THAT(error_of([&] { log_mel(samples, out); }).message(),
              HasSubstr("expected space for 2 x 128 numbers, got 127"));
}

}  // namespace
}  // namespace trireme::speech
