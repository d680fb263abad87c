// The passes of GPUs' attention, run on the host: the bits of the processors' kernel.

#include <gtest/gtest.h>

#include <vector>

#include "packs/text/cuda/attention_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/text/cuda/attention_problem.h"
#include "trireme/error.h"

namespace trireme::text::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

AttentionOutput attention_by_passes(const AttentionProblem& p, Order order) {
  AttentionOutput made(p);
  const internal::AttentionSpace size(internal::Cutter(), internal::Heads(p.sequences(), {}));
  std::vector<std::byte> workspace(size.bytes, std::byte{0xFF});
  internal::attention_passes(p.sequences(), p.options, p.q.data(), p.k.data(), p.v.data(),
                             made.out.data(), made.log_sum.data(), workspace, InOrder(order));
  std::ranges::fill(workspace, std::byte{0xFF});
  internal::attention_backward_passes(p.sequences(), p.options, made.gradient_of(p), workspace,
                                      InOrder(order));
  return made;
}

void expect_bits_of_attention(const AttentionProblem& problem) {
  const AttentionOutput expected = AttentionOutput::of_host(problem);
  for (const Order order : kOrders) {
    const AttentionOutput ours = attention_by_passes(problem, order);
    EXPECT_EQ(ours.out, expected.out);
    EXPECT_EQ(ours.log_sum, expected.log_sum);
    EXPECT_EQ(ours.gradient_q, expected.gradient_q);
    EXPECT_EQ(ours.gradient_k, expected.gradient_k);
    EXPECT_EQ(ours.gradient_v, expected.gradient_v);
  }
}

TEST(CudaAttentionPasses, HaveTheBitsOfAProcessor) {
  expect_bits_of_attention({1, false, 0, false});
  expect_bits_of_attention({16, true, 0, true});
  expect_bits_of_attention({20, false, 0.3, true});
  expect_bits_of_attention({33, true, 0.3, false});
}

TEST(CudaAttentionPasses, BadArgumentsAreRefused) {
  std::vector<std::byte> none;
  const auto run = [&](const DeviceSequences& sequences, const AttentionSettings& options) {
    internal::attention_passes(sequences, options, nullptr, nullptr, nullptr, nullptr, nullptr,
                               none, InOrder());
  };
  EXPECT_THROW(run({.num_heads = 0, .width = 1}, {}), Error);
  EXPECT_THROW(run({.width = 0}, {}), Error);
  EXPECT_THROW(run({.width = 1}, {.drop_probability = 1}), Error);
  const float bias = 0;
  EXPECT_THROW(run({.max_length = 2, .width = 1}, {.bias = &bias, .bias_length = 1}), Error);
  EXPECT_THROW(run({.num_sequences = 1, .max_length = 2, .width = 1}, {}), Error) << "workspace";
}

}  // namespace
}  // namespace trireme::text::cuda
