#include "packs/speech/kernels/log_mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "packs/speech/kernels/log_mel_block.h"
#include "trireme/error.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/scratch.h"

#define TRIREME_LOOPS "packs/speech/kernels/log_mel_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::speech {
namespace {

using internal::kBlockFrames;

constexpr std::int64_t kSlack = 3;  // floats behind a frame that may be read

[[noreturn]] void refuse_mel(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "log-mel features: " + problem);
}

void require(bool is_right, const std::string& name, const std::string& expected, double got) {
  if (is_right) return;
  std::string number = std::to_string(got);
  if (number.find('.') != std::string::npos) number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  refuse_mel(name + " is " + expected + "; got " + number);
}

MelOptions filled(MelOptions options) {
  constexpr std::int64_t kMostRate = 1 << 22, kMostMels = 1 << 14, kMostFft = 1 << 20;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  if (options.win_length == 0) options.win_length = options.n_fft;
  if (options.hop_length == 0) options.hop_length = options.win_length / 2;
  if (options.f_max == 0) options.f_max = number(options.sample_rate / 2);
  require(options.sample_rate >= 2 && options.sample_rate <= kMostRate, "sample_rate",
          "from 2 to 2^22 Hz", number(options.sample_rate));
  require(options.n_fft <= kMostFft, "n_fft", "up to 2^20", number(options.n_fft));
  require(options.win_length >= 1 && options.win_length <= options.n_fft, "win_length",
          "from 1 to n_fft", number(options.win_length));
  require(options.hop_length >= 1 && options.hop_length <= kMostRate, "hop_length",
          "from 1 to 2^22", number(options.hop_length));
  require(options.n_mels >= 1 && options.n_mels <= kMostMels, "n_mels", "from 1 to 2^14",
          number(options.n_mels));
  require(options.f_min >= 0 && std::isfinite(options.f_min), "f_min", "0 Hz or more",
          options.f_min);
  require(options.f_max > options.f_min && options.f_max <= number(options.sample_rate) / 2,
          "f_max", "above f_min, up to half of sample_rate", options.f_max);
  require(options.power == 1 || options.power == 2, "power", "1 or 2", options.power);
  require(options.log_offset >= 0 && std::isfinite(options.log_offset), "log_offset", "0 or more",
          options.log_offset);
  return options;
}

std::int64_t window_first(const MelOptions& options) {
  return (options.n_fft - options.win_length) / 2;
}

/// Hann's, periodic, in the middle of n_fft.
std::vector<float> make_window(const MelOptions& options) {
  std::vector<float> window(static_cast<std::size_t>(options.n_fft + kSlack));
  for (std::int64_t i = 0; i < options.win_length; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(options.win_length);
    window[static_cast<std::size_t>(window_first(options) + i)] =
        static_cast<float>(0.5 - 0.5 * std::cos(angle));
  }
  return window;
}

}  // namespace

LogMel::LogMel(const MelOptions& options)
    : options_(filled(options)),
      window_(make_window(options_)),
      fourier_(internal::make_real_fourier(options_.n_fft)),
      filters_(internal::make_mel_filters({.sample_rate = options_.sample_rate,
                                           .n_fft = options_.n_fft,
                                           .n_mels = options_.n_mels,
                                           .f_min = options_.f_min,
                                           .f_max = options_.f_max,
                                           .norm = options_.norm,
                                           .mel_scale = options_.mel_scale})) {}

std::int64_t LogMel::least_samples() const {
  if (!options_.center) return options_.n_fft;
  return options_.pad_mode == PadMode::kReflect ? options_.n_fft / 2 + 1 : 1;
}

std::int64_t LogMel::num_frames(std::int64_t num_samples) const {
  if (num_samples < least_samples()) {
    refuse_mel("expected " + std::to_string(least_samples()) + " samples or more, got " +
               std::to_string(num_samples));
  }
  return 1 + (options_.center ? num_samples : num_samples - options_.n_fft) / options_.hop_length;
}

/// What frames lie in, and the slack.
std::vector<float> LogMel::padded(std::span<const float> samples) const {
  const std::int64_t side = options_.center ? options_.n_fft / 2 : 0, count = std::ssize(samples);
  std::vector<float> all(static_cast<std::size_t>(count + 2 * side + kSlack));
  float* begin = all.data() + side;
  std::ranges::copy(samples, begin);
  for (std::int64_t i = 1; i <= side && options_.pad_mode == PadMode::kReflect; ++i) {
    begin[-i] = begin[i];
    begin[count - 1 + i] = begin[count - 1 - i];
  }
  return all;
}

void LogMel::operator()(std::span<const float> samples, std::span<float> out) const {
  (*this)(samples, out, kernels::on_caller);
}

void LogMel::operator()(std::span<const float> samples, std::span<float> out,
                        const kernels::Spread& spread) const {
  constexpr std::int64_t kBlocksOfPiece = 16;
  const std::int64_t frames = num_frames(std::ssize(samples)), mels = options_.n_mels;
  if (std::ssize(out) != frames * mels) {
    refuse_mel("expected space for " + std::to_string(frames) + " x " + std::to_string(mels) +
               " numbers, got " + std::to_string(out.size()));
  }
  const std::vector<float> all = padded(samples);
  const auto loop = kernels::of_isa(portable::kLogMel, avx2::kLogMel, avx512::kLogMel);
  const std::int64_t first = window_first(options_);
  internal::LogMelBlock block{.fourier = &fourier_,
                              .window = window_.data(),
                              .window_begin = first / 4 * 4,
                              .window_end = first + options_.win_length,
                              .is_squared = options_.power == 2,
                              .filters = filters_.data(),
                              .num_mels = mels,
                              .log_offset = static_cast<float>(options_.log_offset)};
  const auto piece = [&, block](std::int64_t index) {
    const kernels::ScratchFloats scratch(2 * internal::buffer_floats(options_.n_fft));
    internal::LogMelBlock one = block;
    one.scratch = scratch.floats();
    const std::int64_t step = kBlocksOfPiece * kBlockFrames;
    const std::int64_t end = std::min(frames, (index + 1) * step);
    for (std::int64_t begin = index * step; begin < end; begin += kBlockFrames) {
      one.count = std::min(kBlockFrames, end - begin);
      for (std::int64_t lane = 0; lane < kBlockFrames; ++lane) {
        const std::int64_t frame = begin + std::min(lane, one.count - 1);
        one.frames[static_cast<std::size_t>(lane)] = all.data() + frame * options_.hop_length;
      }
      one.out = out.data() + begin * mels;
      loop(one);
    }
  };
  const std::int64_t num_pieces =
      (frames + kBlocksOfPiece * kBlockFrames - 1) / (kBlocksOfPiece * kBlockFrames);
  kernels::spread_or_caller(spread, num_pieces, 2)(num_pieces, piece);
}

}  // namespace trireme::speech
