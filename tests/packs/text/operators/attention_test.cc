#include "packs/text/operators/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/operators/beside_torch.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

using namespace operators;

using testing::HasSubstr;

/// Padded q, k or v of 3 sequences of up to 37 tokens, 4 heads of 16.
at::Tensor random_heads() { return torch::randn({3, 37, 4, 16}); }

at::Tensor torch_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& mask, bool is_causal) {
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(1, 2); };
  return at::scaled_dot_product_attention(heads_first(q), heads_first(k), heads_first(v),
                                          mask.defined() ? std::optional(mask) : std::nullopt, 0.0,
                                          is_causal)
      .transpose(1, 2);
}

TEST(AttentionOperator, IsTorchsWithGradients) {
  torch::manual_seed(3);
  for (const bool is_causal : {false, true}) {
    expect_like_torch(
        {random_heads(), random_heads(), random_heads()},
        [&](const TensorList& x) { return attention(x[0], x[1], x[2], {.is_causal = is_causal}); },
        [&](const TensorList& x) { return torch_attention(x[0], x[1], x[2], {}, is_causal); });
  }
}

TEST(AttentionOperator, AddsABias) {
  torch::manual_seed(4);
  const at::Tensor bias = torch::randn({4, 37, 37});
  expect_like_torch(
      {random_heads(), random_heads(), random_heads()},
      [&](const TensorList& x) { return attention(x[0], x[1], x[2], {.bias = bias}); },
      [&](const TensorList& x) {
        return torch_attention(x[0], x[1], x[2], bias.to(torch::kDouble).unsqueeze(0), false);
      });
}

TEST(AttentionOperator, LeavesPaddingOut) {
  torch::manual_seed(5);
  const at::Tensor lengths = torch::tensor({37, 0, 12}, torch::kLong);
  const at::Tensor is_token = torch::arange(37).unsqueeze(0) < lengths.unsqueeze(1);
  const at::Tensor mask = is_token.view({3, 1, 1, 37}).expand({3, 4, 37, 37});
  const at::Tensor rows = is_token.view({3, 37, 1, 1});
  expect_like_torch(
      {random_heads(), random_heads(), random_heads()},
      [&](const TensorList& x) { return attention(x[0], x[1], x[2], {.lengths = lengths}); },
      [&](const TensorList& x) {
        return torch_attention(x[0], x[1], x[2], mask, false).masked_fill(rows.logical_not(), 0);
      });
}

TEST(AttentionOperator, DropsTheSameAgainFromTheSameGenerator) {
  const at::Tensor q = random_heads(), k = random_heads(), v = random_heads();
  const auto run = [&](double p) {
    torch::manual_seed(9);
    const auto own = q.clone().requires_grad_();
    const auto out = attention(own, k, v, {.drop_probability = p});
    out.square().sum().backward();
    return std::pair(out.detach(), own.grad());
  };
  const auto once = run(0.3), again = run(0.3), without = run(0);
  EXPECT_TRUE(torch::equal(once.first, again.first));
  EXPECT_TRUE(torch::equal(once.second, again.second));
  EXPECT_FALSE(torch::equal(once.first, without.first));
}

TEST(AttentionOperator, ItsBackwardDropsWhatItsForwardDropped) {
  const at::Tensor q = random_heads(), k = random_heads(), w = random_heads();
  const at::Tensor v = random_heads().requires_grad_();
  const at::Tensor weighted = (attention(q, k, v, {.drop_probability = 0.4}) * w).sum();
  weighted.backward();
  // The output is linear in v.
  const double expected = weighted.item<double>();
  EXPECT_NEAR((v.grad() * v).sum().item<double>(), expected, 1e-4 * std::abs(expected) + 1e-3);
}

TEST(AttentionOperator, TakesBf16) {
  const at::Tensor x = random_heads().to(torch::kBFloat16);
  const at::Tensor out = attention(x, x, x);
  ASSERT_EQ(out.scalar_type(), torch::kBFloat16);
  const at::Tensor wide = x.to(torch::kFloat);
  EXPECT_TRUE(torch::equal(out, attention(wide, wide, wide).to(torch::kBFloat16)));
  const auto gradient_of = [](const at::Tensor& input) {
    const at::Tensor own = input.detach().requires_grad_();
    attention(own, own, own).sum().backward();
    return own.grad();
  };
  EXPECT_EQ(gradient_of(x).scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::allclose(gradient_of(x).to(torch::kFloat), gradient_of(wide), 0.02, 0.02));
}

TEST(AttentionOperator, IsGivenBf16UnderAutocastInBf16AndF32InF16) {
  const at::Tensor x = random_heads(), narrow = x.to(torch::kBFloat16);
  const at::Tensor bias = torch::randn({4, 37, 37});
  const auto mixed = [&] { return attention(x, narrow, x, {.bias = bias}); };
  EXPECT_TRUE(torch::equal(under_autocast(at::kBFloat16, mixed),
                           attention(narrow, narrow, narrow, {.bias = bias})));
  EXPECT_TRUE(torch::equal(under_autocast(at::kHalf, mixed),
                           attention(x, narrow.to(torch::kFloat), x, {.bias = bias})));
}

TEST(AttentionOperator, SaysWhatDoesNotFit) {
  const at::Tensor x = random_heads(), short_x = x.slice(1, 0, 30);
  expect_error([&] { attention(x, short_x, x); },
               "trireme::attention: key must have shape [3, 37, 4, 16], has [3, 30, 4, 16]");
  expect_error([&] { attention(x.to(torch::kDouble), x, x); },
               "trireme::attention: query must be of type Float or BFloat16, is Double");
  expect_error([&] { attention(x, x, x, {.drop_probability = 1}); },
               "drop_probability must be in [0, 1), is 1");
  expect_error([&] { attention(x, x, x, {.lengths = torch::tensor({1, 38, 2}, torch::kLong)}); },
               "lengths[1] must be in [0, 37], is 38");
  const at::Tensor packed = x.flatten(0, 1);
  expect_error(
      [&] { packed_attention(packed, packed, packed, torch::tensor({0, 7}, torch::kLong)); },
      "offsets must end with the number of tokens, 111, end with 7");
  expect_error([&] { attention(x, x, x, {.bias = torch::zeros({4, 37, 37}).requires_grad_()}); },
               "bias requires a gradient, but has none here; detach() it");
}

}  // namespace
}  // namespace trireme::text
