#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "packs/speech/operators/transducer.h"
#include "packs/text/operators/attention.h"
#include "packs/vision/operators/detection.h"
#include "tests/engine/operators/beside_torch.h"
#include "trireme/engine/operators/batch_norm.h"

namespace trireme::operators {
namespace {

/// What autograd and callers may do with every operator that has a gradient.
struct Differentiable {
  std::string name;
  TensorList inputs;
  Function call;
};

at::Tensor ends(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, torch::kLong);
}

std::vector<Differentiable> all_operators() {
  torch::manual_seed(1);
  const speech::TransducerLengths lengths{ends({6, 4}), ends({3, 0})};
  const at::Tensor labels = torch::tensor({{1, 4, 2}, {3, 3, 3}}, torch::kLong);
  const at::Tensor regions = torch::tensor({{1.F, 0.5F, 1.F, 6.F, 7.5F}});
  return {
      {"attention",
       {torch::randn({2, 5, 3, 4}), torch::randn({2, 5, 3, 4}), torch::randn({2, 5, 3, 4})},
       [](const TensorList& x) {
         return text::attention(x[0], x[1], x[2], {.lengths = ends({5, 2})});
       }},
      {"packed_attention",
       {torch::randn({7, 3, 4}), torch::randn({7, 3, 4}), torch::randn({7, 3, 4})},
       [](const TensorList& x) {
         return text::packed_attention(x[0], x[1], x[2], ends({0, 5, 7}));
       }},
      {"batch_norm",
       {torch::randn({3, 4, 5, 2}), torch::randn({4}), torch::randn({4}),
        torch::randn({3, 4, 5, 2})},
       [](const TensorList& x) {
         return batch_norm(x[0], {.weight = x[1], .bias = x[2]},
                           {.residual = x[3], .has_relu = true});
       }},
      {"instance_norm",
       {torch::randn({3, 4, 5, 2}), torch::randn({4}), torch::randn({4})},
       [](const TensorList& x) { return instance_norm(x[0], x[1], x[2]); }},
      {"transducer_joint",
       {torch::randn({2, 6, 8}), torch::randn({2, 4, 8})},
       [=](const TensorList& x) { return speech::transducer_joint(x[0], x[1], lengths); }},
      {"transducer_joint",
       {torch::randn({2, 6, 8}), torch::randn({2, 4, 8})},
       [=](const TensorList& x) {
         return speech::transducer_joint(x[0], x[1], lengths, {.is_packed = true});
       }},
      {"transducer_loss",
       {torch::randn({2, 6, 4, 5})},
       [=](const TensorList& x) { return speech::transducer_loss(x[0], labels, lengths); }},
      {"roi_align",
       {torch::randn({2, 3, 8, 9})},
       [=](const TensorList& x) {
         return vision::roi_align(x[0], regions, {.pooled_height = 2, .pooled_width = 3});
       }},
  };
}

/// The same values, every second element of a larger tensor.
at::Tensor strided(const at::Tensor& x) {
  return torch::stack({x.detach(), torch::full_like(x, 1e9)}, x.dim()).select(x.dim(), 0);
}

struct Result {
  at::Tensor out;
  TensorList gradients;  ///< Undefined for inputs that asked for none.
};

Result run(const Differentiable& op, const TensorList& given, const std::vector<bool>& asks) {
  TensorList inputs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    inputs.push_back(given[i].detach().requires_grad_(asks[i]));
  }
  const at::Tensor out = op.call(inputs);
  // A sum's gradient is one number, expanded.
  out.sum().backward();
  Result result{out.detach(), {}};
  for (const at::Tensor& input : inputs) result.gradients.push_back(input.grad());
  return result;
}

Result run(const Differentiable& op, const TensorList& given) {
  return run(op, given, std::vector<bool>(given.size(), true));
}

TEST(Operators, TakeInputsOfAnyStrides) {
  for (const Differentiable& op : all_operators()) {
    SCOPED_TRACE(op.name);
    const Result expected = run(op, op.inputs);
    TensorList apart;
    for (const at::Tensor& input : op.inputs) apart.push_back(strided(input));
    const Result actual = run(op, apart);
    EXPECT_TRUE(torch::equal(actual.out, expected.out));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      EXPECT_TRUE(torch::equal(actual.gradients[i], expected.gradients[i])) << i;
    }
  }
}

TEST(Operators, TakeExpandedWeights) {
  const at::Tensor x = torch::randn({3, 4, 5});
  const at::Tensor one = torch::full({1}, 0.5), all = torch::full({4}, 0.5);
  EXPECT_TRUE(torch::equal(batch_norm(x, {.weight = one.expand({4}), .bias = one.expand({4})}),
                           batch_norm(x, {.weight = all, .bias = all})));
}

TEST(Operators, GiveGradientsToThoseThatAsk) {
  for (const Differentiable& op : all_operators()) {
    SCOPED_TRACE(op.name);
    const Result expected = run(op, op.inputs);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      std::vector<bool> asks(op.inputs.size());
      asks[i] = true;
      const Result actual = run(op, op.inputs, asks);
      for (std::size_t j = 0; j < op.inputs.size(); ++j) {
        ASSERT_EQ(actual.gradients[j].defined(), i == j);
      }
      EXPECT_TRUE(torch::equal(actual.gradients[i], expected.gradients[i])) << i;
    }
  }
}

TEST(Operators, RefuseASecondDerivative) {
  for (const Differentiable& op : all_operators()) {
    SCOPED_TRACE(op.name);
    const Result expected = run(op, op.inputs);
    TensorList inputs;
    for (const at::Tensor& input : op.inputs) inputs.push_back(input.detach().requires_grad_());
    const auto gradients =
        torch::autograd::grad({op.call(inputs).sum()}, inputs, {}, true, /*create_graph=*/true);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(torch::equal(gradients[i].detach(), expected.gradients[i])) << i;
    }
    try {
      gradients[0].square().sum().backward();
      ADD_FAILURE() << "no error";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("has no second derivative"));
    }
  }
}

TEST(Operators, TakeNothing) {
  const at::Tensor heads = torch::randn({0, 5, 3, 4}).requires_grad_();
  const at::Tensor out = text::attention(heads, heads, heads);
  out.sum().backward();
  EXPECT_EQ(out.sizes(), heads.sizes());
  EXPECT_EQ(heads.grad().sizes(), heads.sizes());
  const at::Tensor padding = text::attention(torch::randn({2, 5, 3, 4}), torch::randn({2, 5, 3, 4}),
                                             torch::randn({2, 5, 3, 4}), {.lengths = ends({0, 0})});
  EXPECT_EQ(padding.abs().max().item<float>(), 0);

  const at::Tensor images = torch::randn({0, 3, 4, 4}).requires_grad_();
  const at::Tensor normal = instance_norm(images, torch::ones({3}), {}, 1e-5, true);
  normal.sum().backward();
  EXPECT_EQ(normal.sizes(), images.sizes());
  EXPECT_EQ(images.grad().sizes(), images.sizes());

  const at::Tensor features = torch::randn({2, 3, 8, 9}).requires_grad_();
  const at::Tensor pooled = vision::roi_align(features, torch::zeros({0, 5}));
  pooled.sum().backward();
  EXPECT_EQ(pooled.sizes(), at::IntArrayRef({0, 3, 7, 7}));
  EXPECT_EQ(features.grad().abs().max().item<float>(), 0);

  const auto [places, counts] =
      vision::fixed_nms(torch::zeros({2, 0, 4}), torch::zeros({2, 0}),
                        torch::zeros({2, 0}, torch::kLong), {.capacity = 3});
  EXPECT_TRUE(torch::equal(places, torch::zeros({2, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(counts, torch::zeros({2}, torch::kLong)));
}

}  // namespace
}  // namespace trireme::operators
