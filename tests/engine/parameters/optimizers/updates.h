#pragma once

#include <torch/torch.h>

#include <cstring>
#include <string>

#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {

/// All parameters at one rate.
inline RuleOf at(double learning_rate) {
  return [learning_rate](const std::string&) { return UpdateRule{learning_rate}; };
}

inline const HasGradient kAll = [](const std::string&) { return true; };

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace trireme::parameters
