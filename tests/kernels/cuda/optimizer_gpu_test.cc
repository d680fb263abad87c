// The optimizers on a GPU: the bits of the processors' kernels.

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/cuda/optimizer.h"

namespace trireme::kernels::cuda {
namespace {

class CudaOptimizer : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
    handle = trireme::cuda::handle_of(*stream);
  }

  /// Two steps of `ours` with arrays of the GPU and of `its` with the host's:
  /// (step, gradient, m, v, parameter, n). Moments are kept as `State`.
  template <typename T, typename State, typename Ours, typename Its>
  void expect_bits(const Ours& ours, const Its& its) {
    for (const std::int64_t n : {1, 1000, 16385, 1'000'001}) {
      std::vector<T> p = random_numbers<T>(n, 1, 0);
      std::vector<State> m(n), v(n);
      const DeviceArray<T> our_p(p, *stream);
      const DeviceArray<State> our_m(m, *stream), our_v(v, *stream);
      for (int step = 1; step <= 2; ++step) {
        const std::vector<T> g = random_numbers<T>(n, 10 + step, 2);
        const DeviceArray<T> our_g(g, *stream);
        ours(step, our_g.data(), our_m.data(), our_v.data(), our_p.data(), n);
        its(step, g.data(), m.data(), v.data(), p.data(), n);
        stream->wait();
      }
      EXPECT_EQ(widened(our_p.values()), widened(p)) << n;
      EXPECT_EQ(widened(our_m.values()), widened(m)) << n;
      EXPECT_EQ(widened(our_v.values()), widened(v)) << n;
    }
  }

  /// With moments of both kinds.
  template <typename Ours, typename Its>
  void expect_bits_of_both(const Ours& ours, const Its& its) {
    expect_bits<float, float>(ours, its);
    expect_bits<float, Bf16>(ours, its);
  }

  std::unique_ptr<Stream> stream;
  CUstream_st* handle = nullptr;
};

TEST_F(CudaOptimizer, SgdHasTheBitsOfAProcessor) {
  const SgdOptions options{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  expect_bits_of_both([&](int step, const float* g, auto* m, auto* /*v*/, float* p,
                          std::int64_t n) { sgd(options, step == 1, g, m, p, n, handle); },
                      [&](int step, const float* g, auto* m, auto* /*v*/, float* p,
                          std::int64_t n) { kernels::sgd(options, step == 1, g, m, p, n); });
}

TEST_F(CudaOptimizer, AdamwHasTheBitsOfAProcessor) {
  expect_bits_of_both([&](int step, const float* g, auto* m, auto* v, float* p,
                          std::int64_t n) { adamw({}, step, g, m, v, p, n, handle); },
                      [&](int step, const float* g, auto* m, auto* v, float* p, std::int64_t n) {
                        kernels::adamw({}, step, g, m, v, p, n);
                      });
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210;
  expect_bits<Bf16, Bf16>([&](int step, const Bf16* g, Bf16* m, Bf16* v, Bf16* p,
                              std::int64_t n) { adamw({}, step, kSeed, g, m, v, p, n, handle); },
                          [&](int step, const Bf16* g, Bf16* m, Bf16* v, Bf16* p, std::int64_t n) {
                            kernels::adamw({}, step, kSeed, g, m, v, p, n);
                          });
}

TEST_F(CudaOptimizer, LayerwiseOnesHaveTheBitsOfAProcessor) {
  const trireme::cuda::DeviceMemory workspace(0, layerwise_workspace_bytes(1'000'001));
  const auto bytes = workspace.bytes();
  expect_bits_of_both([&](int step, const float* g, auto* m, auto* v, float* p,
                          std::int64_t n) { lamb({}, step, g, m, v, p, n, bytes, handle); },
                      [&](int step, const float* g, auto* m, auto* v, float* p, std::int64_t n) {
                        kernels::lamb({}, step, g, m, v, p, n);
                      });
  expect_bits_of_both([&](int /*step*/, const float* g, auto* m, auto* /*v*/, float* p,
                          std::int64_t n) { lars({}, g, m, p, n, bytes, handle); },
                      [&](int /*step*/, const float* g, auto* m, auto* /*v*/, float* p,
                          std::int64_t n) { kernels::lars({}, g, m, p, n); });
  const DeviceArray<double> our_square(std::vector<double>(1), *stream);
  double square = 0;
  expect_bits_of_both(
      [&](int step, const float* g, auto* m, auto* /*v*/, float* p, std::int64_t n) {
        novograd({}, step, g, our_square.data(), m, p, n, bytes, handle);
      },
      [&](int step, const float* g, auto* m, auto* /*v*/, float* p, std::int64_t n) {
        kernels::novograd({}, step, g, square, m, p, n);
      });
}

}  // namespace
}  // namespace trireme::kernels::cuda
