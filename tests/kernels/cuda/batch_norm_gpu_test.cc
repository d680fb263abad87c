// Batch norm on a GPU: the bits of the processors' kernel.

#include <gtest/gtest.h>

#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/cuda/norm_problem.h"
#include "trireme/kernels/cuda/batch_norm.h"

namespace trireme::kernels::cuda {
namespace {

class CudaBatchNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
  }

  NormOutput on_gpu(const NormInput& input, const BatchNormShape& shape) {
    NormOutput result(shape);
    const auto on_device = [&](const auto& values) { return DeviceArray(values, *stream); };
    const auto x = on_device(input.x), residual = on_device(input.residual);
    const auto gamma = on_device(input.gamma), beta = on_device(input.beta);
    const auto gradient_y = on_device(input.gradient_y), y = on_device(result.y);
    const auto variance = on_device(result.variance), mean = on_device(result.mean);
    const auto inverse = on_device(result.inverse), gradient_x = on_device(result.gradient_x);
    const auto gradient_residual = on_device(result.gradient_residual);
    const auto gradient_gamma = on_device(result.gradient_gamma);
    const auto gradient_beta = on_device(result.gradient_beta);
    const auto mask = on_device(result.mask);
    const auto count = on_device(result.count);
    const trireme::cuda::DeviceMemory workspace(0, batch_norm_workspace_bytes(shape));
    const BatchNormStatistics statistics{mean.data(), inverse.data(), count.data()};
    CUstream_st* handle = trireme::cuda::handle_of(*stream);
    batch_norm_forward({.has_relu = true}, shape,
                       {.x = x.data(),
                        .residual = residual.data(),
                        .gamma = gamma.data(),
                        .beta = beta.data(),
                        .y = y.data(),
                        .mask = mask.data(),
                        .variance = variance.data(),
                        .statistics = statistics},
                       workspace.bytes(), handle);
    batch_norm_backward(shape,
                        {.gradient_y = gradient_y.data(),
                         .x = x.data(),
                         .gamma = gamma.data(),
                         .mask = mask.data(),
                         .statistics = statistics,
                         .gradient_x = gradient_x.data(),
                         .gradient_residual = gradient_residual.data(),
                         .gradient_gamma = gradient_gamma.data(),
                         .gradient_beta = gradient_beta.data()},
                        workspace.bytes(), handle);
    result.y = y.values();
    result.variance = variance.values();
    result.mean = mean.values();
    result.inverse = inverse.values();
    result.gradient_x = gradient_x.values();
    result.gradient_residual = gradient_residual.values();
    result.gradient_gamma = gradient_gamma.values();
    result.gradient_beta = gradient_beta.values();
    result.mask = mask.values();
    result.count = count.values();
    result.clear_padding(shape);
    return result;
  }

  std::unique_ptr<Stream> stream;
};

TEST_F(CudaBatchNorm, HasTheBitsOfAProcessor) {
  for (const BatchNormShape& shape : kNormShapes) {
    const NormInput input(shape, true);
    const NormOutput ours = on_gpu(input, shape);
    const NormOutput expected = norm_on_host(input, shape, true);
    EXPECT_EQ(ours.mean, expected.mean);
    EXPECT_EQ(ours.y, expected.y);
    EXPECT_EQ(ours.mask, expected.mask);
    EXPECT_EQ(ours.gradient_x, expected.gradient_x);
    EXPECT_TRUE(ours == expected) << shape.batch << " x " << shape.channels << " x "
                                  << shape.spatial;
  }
}

}  // namespace
}  // namespace trireme::kernels::cuda
