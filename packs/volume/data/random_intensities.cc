#include "packs/volume/data/random_intensities.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::volume {
namespace {

using Key = std::array<std::uint32_t, 2>;

Key key_of(std::uint64_t stream) {
  return {static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
}

/// A number in [low, high), where a stream says that something happens with this probability; else `otherwise`.
double drawn(std::uint64_t stream, double probability, std::array<double, 2> range,
             double otherwise) {
  const auto words = philox({}, key_of(stream));
  if (!(words[0] < probability * 0x1p32)) return otherwise;
  return range[0] + (range[1] - range[0]) * (words[1] * 0x1p-32);
}

/// Two normal numbers.
std::array<double, 2> noise_pair(std::uint64_t index, Key key) {
  const auto words = philox(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 1, 0}, key);
  return normal_pair(words[0], words[1]);
}

void require_option(bool is_good, const char* name, double value, const char* expected) {
  if (is_good) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("volumes: {} is {}, expected {}", name, value, expected));
}

}  // namespace

void check_intensities(const RandomIntensityOptions& options) {
  const auto check_probability = [](const char* name, double value) {
    require_option(value >= 0 && value <= 1, name, value, "within [0, 1]");
  };
  check_probability("brightness_probability", options.brightness_probability);
  check_probability("noise_probability", options.noise_probability);
  require_option(std::isfinite(options.brightness_low), "brightness_low", options.brightness_low,
                 "a number");
  require_option(
      options.brightness_high >= options.brightness_low && std::isfinite(options.brightness_high),
      "brightness_high", options.brightness_high, "a number not below brightness_low");
  require_option(options.noise_deviation >= 0 && std::isfinite(options.noise_deviation),
                 "noise_deviation", options.noise_deviation, "0 or more");
}

RandomIntensities::RandomIntensities(const RandomIntensityOptions& options,
                                     std::uint64_t brightness_stream, std::uint64_t noise_stream)
    : factor_(static_cast<float>(drawn(brightness_stream, options.brightness_probability,
                                       {options.brightness_low, options.brightness_high}, 1))),
      deviation_(drawn(noise_stream, options.noise_probability, {0, options.noise_deviation}, 0)),
      noise_key_(key_of(noise_stream)) {}

void RandomIntensities::apply(std::int64_t first, std::span<float> values) const {
  if (factor_ != 1) {
    for (float& value : values) value *= factor_;
  }
  if (deviation_ == 0) return;
  const auto begin = static_cast<std::uint64_t>(first);
  std::array<double, 2> pair = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t place = begin + i;
    if (i == 0 || place % 2 == 0) pair = noise_pair(place / 2, noise_key_);
    values[i] += static_cast<float>(deviation_ * pair[place % 2]);
  }
}

}  // namespace trireme::volume
