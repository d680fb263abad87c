#pragma once

#include <torch/types.h>

namespace trireme::text {

/// `x`, in training with each element 0 with this probability and the others scaled to the same
/// mean. With probability 0 no operator is called, so none has to draw.
inline torch::Tensor drop(const torch::Tensor& x, double probability, bool is_training) {
  return is_training && probability > 0 ? torch::dropout(x, probability, true) : x;
}

}  // namespace trireme::text
