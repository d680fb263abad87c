// The passes of GPUs' batch norm, run on the host: the bits of the processors' kernel.

#include "trireme/kernels/cuda/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cuda/norm_problem.h"
#include "tests/kernels/cuda/orders.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/batch_norm_passes.h"

namespace trireme::kernels::cuda {
namespace {

NormOutput norm_by_passes(const NormInput& input, const BatchNormShape& shape, bool has_relu,
                          Order order, const internal::SumValues& sum = nullptr) {
  NormOutput output(shape);
  std::ranges::fill(output.mask, 0x5555);  // is written, whatever was there
  const internal::NormWorkspace size(internal::Cutter(), shape);
  std::vector<std::byte> workspace(size.bytes, std::byte{0xFF});
  internal::batch_norm_forward_passes({.has_relu = has_relu}, shape,
                                      forward_arrays(input, has_relu, output), workspace, sum,
                                      InOrder(order));
  internal::batch_norm_backward_passes(shape, backward_arrays(input, has_relu, output), workspace,
                                       sum, InOrder(order));
  if (!has_relu) std::ranges::fill(output.mask, 0);
  output.clear_padding(shape);
  return output;
}

TEST(CudaBatchNormPasses, HaveTheBitsOfAProcessor) {
  for (const BatchNormShape& shape : kNormShapes) {
    for (const bool has_relu : {false, true}) {
      for (const bool has_residual : {false, true}) {
        const NormInput input(shape, has_residual);
        const NormOutput expected = norm_on_host(input, shape, has_relu);
        for (const Order order : kOrders) {
          EXPECT_TRUE(norm_by_passes(input, shape, has_relu, order) == expected)
              << shape.batch << " x " << shape.channels << " x " << shape.spatial << ", ReLU "
              << has_relu << ", residual " << has_residual;
        }
      }
    }
  }
}

/// Two ranks with the same elements.
struct Twins final : StatisticsGroup {
  void sum(std::span<double> values) override { twice(values); }
  static void twice(std::span<double> values) {
    for (double& value : values) value *= 2;
  }
};

TEST(CudaBatchNormPasses, HaveThemInAGroup) {
  for (const BatchNormShape& shape : kNormShapes) {
    const NormInput input(shape, true);
    Twins twins;
    EXPECT_TRUE(norm_by_passes(input, shape, true, Order::kScattered, Twins::twice) ==
                norm_on_host(input, shape, true, &twins))
        << shape.batch << " x " << shape.channels << " x " << shape.spatial;
  }
}

TEST(CudaBatchNormPasses, ARankWithoutElementsTakesPart) {
  for (const bool has_channels_last : {false, true}) {
    const BatchNormShape nothing{0, 3, 5, has_channels_last};
    const auto sum = [](std::span<double> values) {  // with a rank of 2 elements, 1 and 3
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += i < 3 ? 4 : i < 6 ? 10 : 2;
    };
    const NormOutput made =
        norm_by_passes(NormInput(nothing, false), nothing, false, Order::kForward, sum);
    EXPECT_EQ(made.mean, std::vector<float>(3, 2));
    EXPECT_EQ(made.variance, std::vector<float>(3, 1));
  }
}

TEST(CudaBatchNormPasses, ReluPassesNanAndItsGradient) {
  const BatchNormShape shape{2, 3, 35, false};
  NormInput input(shape, true);
  input.residual[107] = std::nanf("");
  const NormOutput expected = norm_on_host(input, shape, true);
  const NormOutput ours = norm_by_passes(input, shape, true, Order::kScattered);
  EXPECT_TRUE(std::isnan(ours.y[107]));
  EXPECT_EQ(ours.mask, expected.mask);
  EXPECT_EQ(ours.gradient_x, expected.gradient_x);
  EXPECT_EQ(ours.gradient_residual[107], input.gradient_y[107]);
  input.x[107] = std::nanf("");  // of channel 0
  EXPECT_TRUE(std::isnan(norm_by_passes(input, shape, true, Order::kForward).variance[0]));
}

TEST(CudaBatchNormPasses, ResultsMayReplaceTheirSources) {
  const BatchNormShape shape{2, 5, 33, false};
  NormInput input(shape, true);
  const NormOutput expected = norm_on_host(input, shape, true);
  NormOutput output(shape);
  const internal::NormWorkspace size(internal::Cutter(), shape);
  std::vector<std::byte> workspace(size.bytes);
  BatchNormForward forward = forward_arrays(input, true, output);
  forward.y = input.residual.data();
  internal::batch_norm_forward_passes({.has_relu = true}, shape, forward, workspace, nullptr,
                                      InOrder());
  EXPECT_EQ(input.residual, expected.y);
  BatchNormBackward backward = backward_arrays(input, true, output);
  backward.gradient_residual = input.gradient_y.data();
  internal::batch_norm_backward_passes(shape, backward, workspace, nullptr, InOrder());
  EXPECT_EQ(input.gradient_y, expected.gradient_residual);
  EXPECT_EQ(output.gradient_x, expected.gradient_x);
}

TEST(CudaBatchNormPasses, BadArgumentsAreRefused) {
  const BatchNormShape one{1, 3, 1, false};
  const NormInput input(one, false);
  EXPECT_THROW(norm_by_passes(input, one, false, Order::kForward), Error);
  const BatchNormShape shape{1, 3, 2, false};
  const NormInput fine(shape, false);
  NormOutput output(shape);
  std::vector<std::byte> small(16);
  const BatchNormForward arrays = forward_arrays(fine, false, output);
  EXPECT_THROW(internal::batch_norm_forward_passes({}, shape, arrays, small, nullptr, InOrder()),
               Error);
  EXPECT_THROW(internal::batch_norm_forward_passes({.has_relu = true}, shape, arrays, small,
                                                   nullptr, InOrder()),
               Error);
}

}  // namespace
}  // namespace trireme::kernels::cuda
