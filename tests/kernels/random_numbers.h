#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "trireme/kernels/half.h"

namespace trireme::kernels {

/// Normal numbers, scaled by powers of two from 2^-octaves to 2^octaves so that sums round.
template <typename T>
std::vector<T> random_numbers(std::int64_t n, unsigned seed, int octaves = 10) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-octaves, octaves);
  std::vector<T> x(n);
  for (T& element : x) {
    const double number = std::ldexp(normal(random), exponent(random));
    if constexpr (std::is_same_v<T, Bf16>) {
      element = to_bf16(static_cast<float>(number));
    } else if constexpr (std::is_same_v<T, F16>) {
      element = to_f16(static_cast<float>(number));
    } else {
      element = static_cast<T>(number);
    }
  }
  return x;
}

template <typename T>
std::vector<double> widened(const std::vector<T>& x) {
  std::vector<double> wide;
  for (const T element : x) wide.push_back(static_cast<double>(to_f32(element)));
  return wide;
}

}  // namespace trireme::kernels
