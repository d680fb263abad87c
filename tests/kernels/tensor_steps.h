#pragma once

// How the optimizers are tested whose step for a tensor depends on its norms.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline double norm(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

inline void expect_near(const Floats& ours, const Doubles& expected, double tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

inline constexpr std::int64_t kTensorSizes[] = {0, 1, 15, 16, 17, 1000, 16384, 16385, 40001};

/// Runs `ours(step, gradient, parameter)` and `its` in turn, on every set of instructions: the
/// reference is near, and all sets give the same bits.
///
/// make   called with a State, as which moments are kept, and the number of elements.
template <typename State, typename Make>
void expect_formula_with(double tolerance, const Make& make) {
  for (const std::int64_t n : kTensorSizes) {
    Floats best;
    for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
      const IsaLimit limit(isa);
      auto [ours, its] = make(State(), n);
      Floats p = random_numbers<float>(n, 1, 0);
      Doubles expected = widened(p);
      for (int step = 1; step <= 3; ++step) {
        const Floats g = random_numbers<float>(n, 10 + step, 0);
        ours(step, g, p);
        its(step, widened(g), expected);
      }
      expect_near(p, expected, tolerance);
      if (best.empty()) best = p;
      EXPECT_EQ(p, best) << n << " elements, " << to_string(isa);
    }
  }
}

template <typename Make>
void expect_formula(const Make& make) {
  expect_formula_with<float>(1e-5, make);
  expect_formula_with<Bf16>(1e-2, make);
}

}  // namespace trireme::kernels
