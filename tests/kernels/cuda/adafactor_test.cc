// The passes of Adafactor for GPUs, run on the host: the bits of the processors' kernel.

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/cuda/adafactor_problem.h"
#include "tests/kernels/cuda/orders.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/adafactor_passes.h"

namespace trireme::kernels::cuda {
namespace {

template <typename State>
void run_passes(const AdafactorOptions& options, int step, const AdafactorShape& shape,
                const std::vector<float>& g, AdafactorTensor<State>& t,
                std::span<std::byte> workspace, const InOrder& each) {
  internal::adafactor_passes(options, step, shape, g.data(), t.row.data(), t.column.data(),
                             t.m.data(), t.p.data(), workspace, each);
}

template <typename State>
void run_passes(const AdafactorOptions& options, int step, std::int64_t n,
                const std::vector<float>& g, AdafactorTensor<State>& t,
                std::span<std::byte> workspace, const InOrder& each) {
  internal::adafactor_passes(options, step, g.data(), t.row.data(), t.m.data(), t.p.data(), n,
                             workspace, each);
}

/// Three steps in every order and of a processor. Shape: of matrices, or a vector's n.
template <typename State, typename Shape>
void expect_bits(const AdafactorOptions& options, const Shape& shape) {
  const AdafactorTensor<State> start(shape);
  AdafactorTensor<State> expected = start;
  for (int step = 1; step <= 3; ++step) {
    expected.step(options, step, shape, expected.gradient(step));
  }
  for (const Order order : kOrders) {
    AdafactorTensor<State> tensor = start;
    for (int step = 1; step <= 3; ++step) {
      std::vector<std::byte> workspace(internal::AdafactorSpace(internal::Cutter(), shape).bytes,
                                       std::byte{0xFF});
      run_passes(options, step, shape, tensor.gradient(step), tensor, workspace, InOrder(order));
    }
    EXPECT_TRUE(tensor == expected)
        << start.p.size() << " elements, order " << static_cast<int>(order);
  }
}

TEST(CudaAdafactorPasses, MatricesHaveTheBitsOfAProcessor) {
  for (const AdafactorOptions& options : kAdafactorOptions) {
    for (const AdafactorShape& shape :
         {AdafactorShape{1, 0, 5}, AdafactorShape{0, 3, 3}, AdafactorShape{1, 1, 1},
          AdafactorShape{1, 1, 17}, AdafactorShape{3, 4, 16}, AdafactorShape{2, 33, 65},
          AdafactorShape{1, 2, 8193}, AdafactorShape{1, 1, 40000}, AdafactorShape{1, 700, 31}}) {
      expect_bits<float>(options, shape);
      expect_bits<Bf16>(options, shape);
    }
  }
}

TEST(CudaAdafactorPasses, VectorsHaveTheBitsOfAProcessor) {
  for (const AdafactorOptions& options : kAdafactorOptions) {
    for (const std::int64_t n : {0, 1, 15, 17, 1000, 16384, 33001}) {
      expect_bits<float>(options, n);
      expect_bits<Bf16>(options, n);
    }
  }
}

TEST(CudaAdafactorPasses, BadArgumentsAreRefused) {
  std::vector<std::byte> small(8), enough(4096);
  std::vector<float> x(8);
  const auto step = [&](const AdafactorOptions& options, int number, const AdafactorShape& shape,
                        float* m, std::span<std::byte> workspace) {
    internal::adafactor_passes(options, number, shape, x.data(), x.data(), x.data(), m, x.data(),
                               workspace, InOrder());
  };
  EXPECT_THROW(step({}, 1, {1, 2, 2}, nullptr, small), Error);
  EXPECT_THROW(step({}, 0, {1, 2, 2}, nullptr, enough), Error);
  EXPECT_THROW(step({}, 1, {1, -1, 2}, nullptr, enough), Error);
  EXPECT_THROW(step({.beta1 = 0.9}, 1, {1, 2, 2}, nullptr, enough), Error);
  EXPECT_THROW(internal::adafactor_passes<float>({}, 1, x.data(), x.data(), nullptr, x.data(), 8,
                                                 small, InOrder()),
               Error);
}

}  // namespace
}  // namespace trireme::kernels::cuda
