#pragma once

#include <map>
#include <string>

#include "benchmarks/kernels/tensors.h"

namespace trireme::kernels::bench {

/// How far two sets of tensors are from each other.
struct Difference {
  /// Of |a - b| / max(|b|, rms of b's tensor): relative, but for elements that are small beside the
  /// others of their tensor, whose rounding says nothing. Infinity where one of both is NaN.
  double largest = 0;
  double excess = 0;  ///< The largest quotient of a tensor's difference and its tolerance.
  std::string where;  ///< "loss[3]", of that one; or what keeps them from being compared.
  bool is_comparable = true;
};

/// Differences that are right: of most tensors, and of those with one of their own.
struct Tolerances {
  double usual = 0;
  std::map<std::string, double> of = {};
};

/// All tensors of b are looked for in a, whatever their type. Without any element there is nothing to
/// compare.
Difference compare(const Tensors& a, const Tensors& b, const Tolerances& tolerances = {});

}  // namespace trireme::kernels::bench
