#include "benchmarks/kernels/random_values.h"

#include <random>

namespace trireme::kernels::bench {

void fill_normal(std::span<float> values, std::uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, scale);
  for (float& value : values) value = normal(random);
}

void fill_even(std::span<float> values, std::uint64_t seed, float low, float high) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> even(low, high);
  for (float& value : values) value = even(random);
}

}  // namespace trireme::kernels::bench
