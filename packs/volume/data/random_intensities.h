#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace trireme::volume {

/// Changes of a patch's intensities at random, once they are scaled. Each by chance, and apart from the other.
struct RandomIntensityOptions {
  /// All values by one factor, from `low` to `high`. MLPerf's code adds 1 to it: 1.7 to 2.3 are its factors.
  double brightness_probability = 0.1;
  double brightness_low = 0.7, brightness_high = 1.3;

  /// A normal number to each value, of a deviation from 0 to `noise_deviation`, the same for all.
  double noise_probability = 0.1;
  double noise_deviation = 0.1;

  bool operator==(const RandomIntensityOptions&) const = default;
};

/// Errors   kInvalidArgument, naming it, for an option out of range.
void check_intensities(const RandomIntensityOptions& options);

/// What happens to the values of one patch. Immutable.
///
///     brightness   word 0 of philox({}, its stream) says whether, word 1 by which factor
///     noise        word 0 of philox({}, its stream) says whether, word 1 of which deviation; values 2 i and 2 i + 1 get the two
///                  numbers of normal_pair(words 0 and 1 of philox({lower half of i, upper half, 1, 0}, its stream)), in f64,
///                  rounded to f32
class RandomIntensities {
 public:
  RandomIntensities(const RandomIntensityOptions& options, std::uint64_t brightness_stream,
                    std::uint64_t noise_stream);

  /// Of the values of the patch from `first` on, in place.
  void apply(std::int64_t first, std::span<float> values) const;

 private:
  float factor_ = 1;
  double deviation_ = 0;  // 0: no noise
  std::array<std::uint32_t, 2> noise_key_;
};

}  // namespace trireme::volume
