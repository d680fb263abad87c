#pragma once

#include <compare>
#include <cstdint>

namespace trireme::graph {

/// An integer that may grow with the batch: `per_sample * batch + fixed`.
///
/// Shapes, strides and integer arguments of a recording are sizes; `{0, 8}` is the plain 8.
struct Size {
  std::int64_t per_sample = 0;
  std::int64_t fixed = 0;

  constexpr std::int64_t at(std::int64_t batch) const { return per_sample * batch + fixed; }
  constexpr bool is_fixed() const { return per_sample == 0; }
  auto operator<=>(const Size&) const = default;
};

/// The same for real numbers (a loss divided by the batch size arrives as one).
struct Real {
  double per_sample = 0;
  double fixed = 0;

  constexpr double at(std::int64_t batch) const {
    return per_sample == 0 ? fixed : per_sample * static_cast<double>(batch) + fixed;
  }
  bool operator==(const Real&) const = default;
};

}  // namespace trireme::graph
