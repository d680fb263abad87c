#include "benchmarks/wire/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::bench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = std::ceil(q * static_cast<double>(values.size())) - 1;
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::max(position, 0.0));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::vector<double> largest(std::span<const std::vector<double>> lists) {
  if (lists.empty()) return {};
  std::vector<double> result = lists[0];
  for (const std::vector<double>& list : lists) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::max(result[i], list.at(i));
  }
  return result;
}

}  // namespace trireme::bench
