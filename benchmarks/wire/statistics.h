#pragma once

#include <span>
#include <vector>

namespace trireme::bench {

/// The smallest of `values` that is not below a share `q` of them: 0.5 gives the (lower) median.
/// NaN where there are none.
double quantile(std::vector<double> values, double q);

/// NaN where there are none. values: positive.
double geometric_mean(std::span<const double> values);

/// By position, the largest of several ranks' values. lists: of equal length.
std::vector<double> largest(std::span<const std::vector<double>> lists);

}  // namespace trireme::bench
