// The passes of GPUs' transducer kernels, run on the host: the bits of the processors' kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "packs/speech/cuda/transducer_joint_passes.h"
#include "packs/speech/cuda/transducer_loss_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/speech/cuda/transducer_problem.h"
#include "trireme/error.h"

namespace trireme::speech::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

template <typename T>
void solve_by_passes(const LossProblem<T>& p, Order order, std::vector<float>& loss,
                     std::vector<T>& gradient) {
  const DeviceLattices lattices = p.batch.device_lattices();
  const DeviceTargets targets{p.labels.data(), p.vocabulary, p.blank};
  const internal::LossSpace size(internal::Cutter(), lattices, targets);
  std::vector<std::byte> workspace(size.bytes, std::byte{0xFF});
  internal::transducer_loss_passes(lattices, targets, p.logits.data(), workspace, loss.data(),
                                   InOrder(order));
  internal::transducer_loss_backward_passes(lattices, targets, p.logits.data(), workspace,
                                            p.scale.data(), gradient.data(), InOrder(order));
}

template <typename T>
void expect_bits_of_loss(std::int64_t vocabulary, std::int64_t blank) {
  for (const bool is_packed : {false, true}) {
    const LossProblem<T> problem(vocabulary, blank, is_packed);
    std::vector<float> expected(5);
    std::vector<T> expected_gradient(problem.logits.size());
    problem.solve(expected, expected_gradient);
    for (const Order order : kOrders) {
      std::vector<float> loss(5, unwritten<float>());
      std::vector<T> gradient(problem.logits.size(), unwritten<T>());
      solve_by_passes(problem, order, loss, gradient);
      EXPECT_EQ(loss, expected) << "V " << vocabulary << ", packed " << is_packed;
      EXPECT_TRUE(as_floats(gradient) == as_floats(expected_gradient))
          << "V " << vocabulary << ", packed " << is_packed;
    }
  }
}

TEST(CudaTransducerPasses, LossHasTheBitsOfAProcessor) {
  expect_bits_of_loss<float>(2, 1);
  expect_bits_of_loss<float>(16, 0);
  expect_bits_of_loss<float>(29, 28);
  expect_bits_of_loss<float>(1030, 7);
  expect_bits_of_loss<kernels::Bf16>(29, 0);
}

TEST(CudaTransducerPasses, AnAlignmentThatIsImpossibleHasAnInfiniteLoss) {
  LossProblem<float> problem(5, 0, false);
  for (std::int64_t row = 0; row < problem.batch.lattices().num_rows(); ++row) {
    problem.logits[row * 5] = -std::numeric_limits<float>::infinity();
  }
  std::vector<float> loss(5), gradient(problem.logits.size());
  solve_by_passes(problem, Order::kForward, loss, gradient);
  for (const float value : loss) EXPECT_EQ(value, std::numeric_limits<float>::infinity());
}

TEST(CudaTransducerPasses, ANanNamesItsSample) {
  LossProblem<float> problem(5, 0, false);
  problem.logits[problem.batch.lattices().first_row(2) * 5 + 3] = std::nanf("");
  std::vector<float> loss(5), gradient(problem.logits.size());
  solve_by_passes(problem, Order::kForward, loss, gradient);
  for (int b = 0; b < 5; ++b) EXPECT_EQ(std::isnan(loss[b]), b == 2) << b;
}

template <typename T>
void expect_bits_of_joint(std::int64_t width, double drop_probability) {
  for (const bool is_packed : {false, true}) {
    const JointProblem<T> p(width, drop_probability, is_packed);
    const auto expected = JointResult<T>::of_host(p);
    for (const Order order : kOrders) {
      JointResult<T> made(p);
      const DeviceLattices lattices = p.batch.device_lattices();
      internal::joint_passes(lattices, p.options, p.f.data(), p.g.data(), made.out.data(),
                             made.mask.data(), InOrder(order));
      internal::joint_backward_passes(lattices, p.options, p.dout.data(), made.mask.data(),
                                      made.df.data(), made.dg.data(), InOrder(order));
      EXPECT_TRUE(made == expected)
          << "H " << width << ", p " << drop_probability << ", packed " << is_packed;
    }
  }
}

TEST(CudaTransducerPasses, JointHasTheBitsOfAProcessor) {
  for (const double drop_probability : {0.0, 0.3}) {
    for (const std::int64_t width : {1, 16, 130}) {
      expect_bits_of_joint<float>(width, drop_probability);
    }
    expect_bits_of_joint<kernels::Bf16>(47, drop_probability);
  }
}

TEST(CudaTransducerPasses, BadArgumentsAreRefused) {
  const LossProblem<float> problem(5, 0, false);
  const DeviceLattices lattices = problem.batch.device_lattices();
  std::vector<std::byte> small(16);
  float x = 0;
  EXPECT_THROW(
      internal::transducer_loss_passes(lattices, {nullptr, 5, 0}, &x, small, &x, InOrder()), Error);
  EXPECT_THROW(
      internal::transducer_loss_passes(lattices, {nullptr, 5, 5}, &x, small, &x, InOrder()), Error);
  EXPECT_THROW(internal::JointTerms({.width = 0}), Error);
  EXPECT_THROW(internal::JointTerms({.width = 1, .drop_probability = 1}), Error);
}

}  // namespace
}  // namespace trireme::speech::cuda
