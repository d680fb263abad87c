#pragma once

#include <string>

#include "trireme/kernels/bench/tensors.h"

namespace trireme::kernels::bench {

/// How far two sets of tensors are from each other.
struct Difference {
  double largest = 0;  ///< Of |a - b| / max(1, |b|); infinity where one of both is NaN.
  std::string where;   ///< "loss[3]", of the largest; or what keeps them from being compared.
  bool is_comparable = true;
};

/// All tensors of b are looked for in a, whatever their type. Without any element there is nothing to
/// compare.
Difference compare(const Tensors& a, const Tensors& b);

}  // namespace trireme::kernels::bench
