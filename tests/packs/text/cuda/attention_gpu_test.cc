// Attention on a GPU, against the processors' kernel. What follows from log_sum may differ as its
// logarithm does.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/text/cuda/attention_problem.h"

namespace trireme::text::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

class CudaAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
  }

  AttentionOutput on_gpu(const AttentionProblem& p) {
    CUstream_st* handle = trireme::cuda::handle_of(*stream);
    const auto on_device = [&](const auto& values) { return DeviceArray(values, *stream); };
    AttentionOutput made(p);
    const auto offsets = on_device(p.offsets);
    const auto q = on_device(p.q), k = on_device(p.k), v = on_device(p.v);
    const auto gradient = on_device(p.gradient), bias = on_device(p.bias);
    const auto out = on_device(made.out), log_sum = on_device(made.log_sum);
    const auto gradient_q = on_device(made.gradient_q), gradient_k = on_device(made.gradient_k);
    const auto gradient_v = on_device(made.gradient_v);
    DeviceSequences sequences = p.sequences();
    sequences.offsets = offsets.data();
    AttentionSettings options = p.options;
    options.bias = bias.data();
    const trireme::cuda::DeviceMemory workspace(0, attention_workspace_bytes(sequences));
    attention(sequences, options, q.data(), k.data(), v.data(), out.data(), log_sum.data(),
              workspace.bytes(), handle);
    attention_backward(sequences, options,
                       {q.data(), k.data(), v.data(), out.data(), log_sum.data(), gradient.data(),
                        gradient_q.data(), gradient_k.data(), gradient_v.data()},
                       workspace.bytes(), handle);
    made.out = out.values();
    made.log_sum = log_sum.values();
    made.gradient_q = gradient_q.values();
    made.gradient_k = gradient_k.values();
    made.gradient_v = gradient_v.values();
    return made;
  }

  static void expect_near(const std::vector<float>& ours, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_NEAR(ours[i], expected[i], 4e-6 * std::max(1.0F, std::abs(expected[i]))) << i;
    }
  }

  std::unique_ptr<Stream> stream;
};

TEST_F(CudaAttention, IsThatOfAProcessor) {
  for (const bool is_causal : {false, true}) {
    const AttentionProblem problem(33, is_causal, 0.3, true);
    const AttentionOutput ours = on_gpu(problem);
    const AttentionOutput expected = AttentionOutput::of_host(problem);
    EXPECT_EQ(ours.out, expected.out);
    expect_near(ours.log_sum, expected.log_sum);
    expect_near(ours.gradient_q, expected.gradient_q);
    expect_near(ours.gradient_k, expected.gradient_k);
    expect_near(ours.gradient_v, expected.gradient_v);
  }
}

}  // namespace
}  // namespace trireme::text::cuda
