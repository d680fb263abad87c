#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace trireme::vision {

/// [n, 4], of sides from 0.05 to 0.45, in 0 to 1.
inline at::Tensor random_boxes(std::int64_t n) {
  const auto side = torch::rand({n, 2}) * 0.4 + 0.05;
  const auto corner = torch::rand({n, 2}) * (1 - side);
  return torch::cat({corner, corner + side}, 1);
}

}  // namespace trireme::vision
