#pragma once

// Stands for a GPU on the host: runs passes (kernels/cuda/passes.h) in some order of their indices.

#include <cstdint>

namespace trireme::kernels::cuda {

enum class Order { kForward, kReversed, kScattered };

inline constexpr Order kOrders[] = {Order::kForward, Order::kReversed, Order::kScattered};

struct InOrder {
  Order order = Order::kForward;

  template <typename Pass>
  void operator()(std::int64_t n, const Pass& pass) const {
    constexpr std::int64_t kPrime = 1'000'003;  // divides no n of a test
    for (std::int64_t i = 0; i < n; ++i) {
      pass(order == Order::kForward ? i : order == Order::kReversed ? n - 1 - i : i * kPrime % n);
    }
  }
};

}  // namespace trireme::kernels::cuda
