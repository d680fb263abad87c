#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace trireme::benchmarks {

/// Two contenders timed in turn, so that what else the machine does meets both.
struct Times {
  std::vector<double> first_ms;
  std::vector<double> second_ms;
};

inline double run_ms(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Warms both up, then times them `rounds` times, swapping who goes first.
inline Times alternate(const std::function<void()>& first, const std::function<void()>& second,
                       int rounds) {
  for (int i = 0; i < 5; ++i) {
    first();
    second();
  }
  Times times;
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == 0) times.first_ms.push_back(run_ms(first));
    times.second_ms.push_back(run_ms(second));
    if (i % 2 != 0) times.first_ms.push_back(run_ms(first));
  }
  return times;
}

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace trireme::benchmarks
