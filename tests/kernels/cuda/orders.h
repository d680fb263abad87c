#pragma once

// Stands for a GPU on the host: runs passes (kernels/cuda/passes.h) in some order of their indices.

#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "trireme/kernels/cuda/passes.h"

namespace trireme::kernels::cuda {

enum class Order { kForward, kReversed, kScattered };

inline constexpr Order kOrders[] = {Order::kForward, Order::kReversed, Order::kScattered};

class InOrder {
 public:
  explicit InOrder(Order order = Order::kForward) : order_(order) {}

  template <typename Pass>
  void operator()(std::int64_t n, const Pass& pass) const {
    for (std::int64_t i = 0; i < n; ++i) pass(place(i, n));
  }

  template <typename Pass>
  void steps(const internal::StepSizes& sizes, const Pass& pass) const {
    for (std::int64_t group = 0; group < sizes.num_groups; ++group) {
      for (std::int64_t step = 0; step < sizes.num_steps; ++step) {
        for (std::int64_t i = 0; i < sizes.num_indices; ++i) {
          pass(place(group, sizes.num_groups), step, place(i, sizes.num_indices));
        }
      }
    }
  }

 private:
  std::int64_t place(std::int64_t i, std::int64_t n) const {
    constexpr std::int64_t kPrime = 1'000'003;  // divides no n of a test
    if (order_ == Order::kReversed) return n - 1 - i;
    return order_ == Order::kForward ? i : i * kPrime % n;
  }

  Order order_;
};

/// Several threads at once, of which each takes every fourth index: for passes whose indices change
/// something together (kernels/cuda/atomics.h).
class OnThreads {
 public:
  template <typename Pass>
  void operator()(std::int64_t n, const Pass& pass) const {
    std::latch start(kThreads);
    std::vector<std::jthread> threads;
    for (std::int64_t first = 0; first < kThreads; ++first) {
      threads.emplace_back([&, first] {
        start.arrive_and_wait();
        for (std::int64_t i = first; i < n; i += kThreads) pass(i);
      });
    }
  }

  template <typename Pass>
  void steps(const internal::StepSizes& sizes, const Pass& pass) const {
    for (std::int64_t group = 0; group < sizes.num_groups; ++group) {
      for (std::int64_t step = 0; step < sizes.num_steps; ++step) {
        (*this)(sizes.num_indices, [&](std::int64_t i) { pass(group, step, i); });
      }
    }
  }

 private:
  static constexpr std::int64_t kThreads = 4;
};

}  // namespace trireme::kernels::cuda
