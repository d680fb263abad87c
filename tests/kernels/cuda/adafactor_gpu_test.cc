// Adafactor on a GPU: the bits of the processors' kernel.

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/cuda/adafactor_problem.h"
#include "tests/kernels/cuda/device_array.h"
#include "trireme/kernels/cuda/adafactor.h"

namespace trireme::kernels::cuda {
namespace {

class CudaAdafactor : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
    handle = trireme::cuda::handle_of(*stream);
  }

  /// Two steps of ours (step, gradient, row, column, m, parameter) and of a processor.
  template <typename State, typename Shape, typename Ours>
  void expect_bits(const AdafactorOptions& options, const Shape& shape, const Ours& ours) {
    AdafactorTensor<State> expected(shape);
    const DeviceArray<float> p(expected.p, *stream);
    const DeviceArray<State> m(expected.m, *stream);
    const DeviceArray<float> row(expected.row, *stream), column(expected.column, *stream);
    for (int step = 1; step <= 2; ++step) {
      const std::vector<float> g = expected.gradient(step);
      const DeviceArray<float> our_g(g, *stream);
      ours(step, our_g.data(), row.data(), column.data(), m.data(), p.data());
      expected.step(options, step, shape, g);
      stream->wait();
    }
    EXPECT_EQ(p.values(), expected.p);
    EXPECT_EQ(widened(m.values()), widened(expected.m));
    EXPECT_EQ(row.values(), expected.row);
    EXPECT_EQ(column.values(), expected.column);
  }

  std::unique_ptr<Stream> stream;
  CUstream_st* handle = nullptr;
};

TEST_F(CudaAdafactor, MatricesHaveTheBitsOfAProcessor) {
  for (const AdafactorOptions& options : kAdafactorOptions) {
    for (const AdafactorShape& shape :
         {AdafactorShape{1, 1, 1}, AdafactorShape{2, 33, 65}, AdafactorShape{1, 1000, 1001}}) {
      const trireme::cuda::DeviceMemory workspace(0, adafactor_workspace_bytes(shape));
      const auto ours = [&](int step, const float* g, float* row, float* column, auto* m,
                            float* p) {
        adafactor(options, step, shape, g, row, column, m, p, workspace.bytes(), handle);
      };
      expect_bits<float>(options, shape, ours);
      expect_bits<Bf16>(options, shape, ours);
    }
  }
}

TEST_F(CudaAdafactor, VectorsHaveTheBitsOfAProcessor) {
  for (const AdafactorOptions& options : kAdafactorOptions) {
    for (const std::int64_t n : {1, 1000, 16385, 1'000'001}) {
      const trireme::cuda::DeviceMemory workspace(0, adafactor_workspace_bytes(n));
      const auto ours = [&](int step, const float* g, float* v, float* /*column*/, auto* m,
                            float* p) {
        adafactor(options, step, g, v, m, p, n, workspace.bytes(), handle);
      };
      expect_bits<float>(options, n, ours);
      expect_bits<Bf16>(options, n, ours);
    }
  }
}

}  // namespace
}  // namespace trireme::kernels::cuda
