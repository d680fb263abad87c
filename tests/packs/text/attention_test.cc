#include "packs/text/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "tests/kernels/random_numbers.h"
#include "tests/packs/text/reference/attention.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::text {
namespace {

using namespace kernels;

struct AttentionInputs {
  std::vector<std::int64_t> offsets;
  std::int64_t num_heads, width;
  AttentionSettings options;

  AttentionShape shape() const { return {offsets, num_heads, width}; }
  std::int64_t rows() const { return offsets.back() * num_heads; }
  std::vector<float> tensor(unsigned seed) const {
    return random_numbers<float>(rows() * width, seed, 0);
  }
};

template <typename T>
struct AttentionResults {
  std::vector<T> out, log_sum, gradient_q, gradient_k, gradient_v;

  explicit AttentionResults(const AttentionInputs& inputs)
      : out(inputs.rows() * inputs.width),
        log_sum(inputs.rows()),
        gradient_q(out.size()),
        gradient_k(out.size()),
        gradient_v(out.size()) {}
  bool operator==(const AttentionResults&) const = default;
};

AttentionResults<float> run_attention(const AttentionInputs& inputs,
                                      const kernels::Spread& spread = kernels::on_caller) {
  AttentionResults<float> made(inputs);
  const auto q = inputs.tensor(1), k = inputs.tensor(2), v = inputs.tensor(3), g = inputs.tensor(4);
  attention(inputs.shape(), inputs.options, q.data(), k.data(), v.data(), made.out.data(),
            made.log_sum.data(), spread);
  attention_backward(inputs.shape(), inputs.options,
                     {q.data(), k.data(), v.data(), made.out.data(), made.log_sum.data(), g.data(),
                      made.gradient_q.data(), made.gradient_k.data(), made.gradient_v.data()},
                     spread);
  return made;
}

AttentionResults<double> attention_reference(const AttentionInputs& inputs) {
  AttentionResults<double> made(inputs);
  const auto q = kernels::widened(inputs.tensor(1)), k = kernels::widened(inputs.tensor(2));
  const auto v = kernels::widened(inputs.tensor(3)), g = kernels::widened(inputs.tensor(4));
  reference::attention(inputs.shape(), inputs.options, q.data(), k.data(), v.data(),
                       made.out.data(), made.log_sum.data());
  reference::attention_backward<double>(
      inputs.shape(), inputs.options,
      {q.data(), k.data(), v.data(), made.out.data(), made.log_sum.data(), g.data(),
       made.gradient_q.data(), made.gradient_k.data(), made.gradient_v.data()});
  return made;
}

void expect_close(const std::vector<float>& ours, const std::vector<double>& exact) {
  ASSERT_EQ(ours.size(), exact.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], exact[i], 4e-6 * std::max(1.0, std::abs(exact[i]))) << i;
  }
}

void for_each_attention(const std::function<void(const AttentionInputs&)>& body) {
  // 1, 0, 47, 113, 129 and 0 tokens
  const std::vector<std::int64_t> offsets = {0, 1, 1, 48, 161, 290, 290};
  const std::vector<float> bias = random_numbers<float>(3 * 130 * 130, 9, 0);
  for (const std::int64_t width : {1, 16, 24, 64, 100}) {
    for (const bool is_causal : {false, true}) {
      for (const double p : {0.0, 0.3}) {
        for (const bool has_bias : {false, true}) {
          SCOPED_TRACE(testing::Message() << width << is_causal << p << has_bias);
          body({offsets,
                3,
                width,
                {.is_causal = is_causal,
                 .drop_probability = p,
                 .seed = 0x123456789ABCDEF,
                 .bias = has_bias ? bias.data() : nullptr,
                 .bias_length = 130}});
        }
      }
    }
  }
}

TEST(AttentionTest, EqualsTheReference) {
  for_each_attention([](const AttentionInputs& inputs) {
    const AttentionResults<float> ours = run_attention(inputs);
    const AttentionResults<double> exact = attention_reference(inputs);
    expect_close(ours.out, exact.out);
    expect_close(ours.log_sum, exact.log_sum);
    expect_close(ours.gradient_q, exact.gradient_q);
    expect_close(ours.gradient_k, exact.gradient_k);
    expect_close(ours.gradient_v, exact.gradient_v);
  });
}

TEST(AttentionTest, GivesTheSameBitsOnAllInstructionSetsAndThreads) {
  for_each_attention([](const AttentionInputs& inputs) {
    if (inputs.width == 1) return;
    const AttentionResults<float> best = run_attention(inputs);
    EXPECT_EQ(best, run_attention(inputs, kernels::on_threads(3)));
    for (const Isa limit : {Isa::kPortable, Isa::kAvx2}) {
      const kernels::IsaLimit limited(limit);
      EXPECT_EQ(best, run_attention(inputs)) << static_cast<int>(limit);
    }
  });
}

TEST(AttentionTest, GradientOfTheReferenceEqualsDifferences) {
  const std::vector<float> bias = random_numbers<float>(2 * 25, 9, 0);
  const AttentionInputs inputs{{0, 5, 5, 8}, 2, 3, {true, 0.25, 7, bias.data(), 5}};
  const AttentionResults<double> exact = attention_reference(inputs);
  std::vector<double> tensors[3] = {kernels::widened(inputs.tensor(1)),
                                    kernels::widened(inputs.tensor(2)),
                                    kernels::widened(inputs.tensor(3))};
  const auto g = kernels::widened(inputs.tensor(4));
  const auto loss = [&] {
    AttentionResults<double> made(inputs);
    reference::attention(inputs.shape(), inputs.options, tensors[0].data(), tensors[1].data(),
                         tensors[2].data(), made.out.data(), made.log_sum.data());
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * made.out[i];
    return sum;
  };
  const std::vector<double>* gradients[] = {&exact.gradient_q, &exact.gradient_k,
                                            &exact.gradient_v};
  constexpr double kStep = 1e-5;
  for (int t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double x = tensors[t][i];
      tensors[t][i] = x + kStep;
      const double above = loss();
      tensors[t][i] = x - kStep;
      const double below = loss();
      tensors[t][i] = x;
      EXPECT_NEAR((above - below) / (2 * kStep), (*gradients[t])[i], 1e-8) << t << " " << i;
    }
  }
}

/// With v and the gradient of `out` unit matrices both show which elements were dropped.
TEST(AttentionTest, DropsTheSameElementsInForwardAndBackward) {
  constexpr std::int64_t kLength = 200;
  const std::vector<std::int64_t> offsets = {0, kLength};
  const AttentionShape shape{offsets, 1, kLength};
  const AttentionSettings options{.drop_probability = 0.2, .seed = 5};
  const std::vector<float> zeros(kLength * kLength);
  std::vector<float> unit = zeros, out = zeros, log_sum(kLength), dq = zeros, dk = zeros,
                     dv = zeros;
  for (std::int64_t i = 0; i < kLength; ++i) unit[i * kLength + i] = 1;
  attention(shape, options, zeros.data(), zeros.data(), unit.data(), out.data(), log_sum.data());
  attention_backward(shape, options,
                     {zeros.data(), zeros.data(), unit.data(), out.data(), log_sum.data(),
                      unit.data(), dq.data(), dk.data(), dv.data()});
  double num_kept = 0;
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t j = 0; j < kLength; ++j) {
      const bool is_kept = reference::keeps(options, 0, i, j);
      EXPECT_EQ(out[i * kLength + j] > 0, is_kept);
      EXPECT_EQ(dv[j * kLength + i] > 0, is_kept);
      num_kept += is_kept;
    }
  }
  EXPECT_NEAR(num_kept / (kLength * kLength), 0.8, 0.01);  // 5 standard deviations
}

TEST(AttentionTest, TakesNoTokensFromNoMemory) {
  for (const std::vector<std::int64_t>& offsets :
       {std::vector<std::int64_t>{0}, {0, 0}, {0, 0, 0}}) {
    const AttentionResults<float> none = run_attention({offsets, 3, 8, {}});
    EXPECT_TRUE(none.out.empty());
  }
}

TEST(AttentionTest, LeavesOutWhatABiasForbids) {
  const float none = -INFINITY;
  const float bias[] = {0, none, none, 0};
  const AttentionInputs inputs{{0, 2}, 1, 4, {.bias = bias, .bias_length = 2}};
  EXPECT_EQ(run_attention(inputs).out, inputs.tensor(3));
}

std::string attention_refusal(const AttentionInputs& inputs) {
  try {
    attention(inputs.shape(), inputs.options, nullptr, nullptr, nullptr, nullptr, nullptr);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return std::string(error.message());
  }
  return "";
}

TEST(AttentionTest, NamesWhatIsWrong) {
  EXPECT_NE(attention_refusal({{}, 1, 1, {}}).find("got none"), std::string::npos);
  EXPECT_NE(attention_refusal({{1, 2}, 1, 1, {}}).find("start at 0, got 1"), std::string::npos);
  EXPECT_NE(attention_refusal({{0, 3, 2}, 1, 1, {}}).find("sequence 1 ends at offset 2"),
            std::string::npos);
  EXPECT_NE(attention_refusal({{0}, 0, 1, {}}).find("got 0 heads"), std::string::npos);
  EXPECT_NE(attention_refusal({{0}, 1, 0, {}}).find("heads of 0"), std::string::npos);
  for (const double p : {1.0, -0.1, std::nan("")}) {
    EXPECT_NE(attention_refusal({{0}, 1, 1, {.drop_probability = p}}).find("dropout"),
              std::string::npos);
  }
  const float bias = 0;
  EXPECT_NE(
      attention_refusal({{0, 2}, 1, 1, {.bias = &bias, .bias_length = 1}}).find("sequence 0 has 2"),
      std::string::npos);
}

}  // namespace
}  // namespace trireme::text
