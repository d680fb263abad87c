#include "trireme/engine/operators/cross_entropy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/operators/beside_torch.h"

namespace trireme::operators {
namespace {

at::Tensor torch_losses(const at::Tensor& logits, const at::Tensor& classes) {
  const auto logs = logits.log_softmax(-1);
  return logs.gather(-1, classes.unsqueeze(-1)).squeeze(-1).neg();
}

TEST(CrossEntropyOperator, IsTorchsWithGradients) {
  torch::manual_seed(3);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{5}, {1}, {7, 1}, {4, 16}, {3, 9, 81}, {2, 3, 4, 1500}}) {
    const auto classes =
        torch::randint(sizes.back(), at::IntArrayRef(sizes).slice(0, sizes.size() - 1));
    expect_like_torch(
        {4 * torch::randn(sizes)},
        [&](const TensorList& x) { return cross_entropy(x[0], classes); },
        [&](const TensorList& x) { return torch_losses(x[0], classes); });
  }
}

TEST(CrossEntropyOperator, StridedLogitsAreTakenAsTheyLie) {
  torch::manual_seed(4);
  const auto classes = torch::randint(6, {5, 3});
  expect_like_torch(
      {torch::randn({6, 3, 5}).permute({2, 1, 0})},
      [&](const TensorList& x) { return cross_entropy(x[0], classes); },
      [&](const TensorList& x) { return torch_losses(x[0], classes); });
}

TEST(CrossEntropyOperator, RowsThatDoNotCountHaveNoGradient) {
  torch::manual_seed(5);
  const auto logits = torch::randn({4, 10}).requires_grad_();
  const auto counts = torch::tensor({0, 1, 0, 1}, torch::kFloat);
  (cross_entropy(logits, torch::tensor({1, 2, 3, 4})) * counts).sum().backward();
  EXPECT_EQ(logits.grad().ne(0).any(1).sum().item<int>(), 2);
  EXPECT_TRUE(logits.grad()[1].ne(0).all().item<bool>());
}

TEST(CrossEntropyOperator, HidesNothing) {
  auto logits = torch::zeros({2, 3});
  const auto classes = torch::tensor({0, 1});
  logits[1][2] = -std::numeric_limits<float>::infinity();  // A class that cannot be.
  EXPECT_NEAR(cross_entropy(logits, classes)[1].item<float>(), std::log(2.0), 1e-6);
  logits[1][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(cross_entropy(logits, classes)[1].isnan().item<bool>());
  EXPECT_FALSE(cross_entropy(logits, classes)[0].isnan().item<bool>());
  logits[1][0] = std::numeric_limits<float>::quiet_NaN();
  logits[1][2] = 0;
  EXPECT_TRUE(cross_entropy(logits, classes)[1].isnan().item<bool>());
}

TEST(CrossEntropyOperator, NamesWhatDoesNotFit) {
  const auto logits = torch::randn({2, 3});
  expect_error([&] { cross_entropy(logits, torch::tensor({0, 3})); }, "row 1 is of class 3");
  expect_error([&] { cross_entropy(logits, torch::tensor({0, -100})); }, "row 1 is of class -100");
  expect_error([&] { cross_entropy(logits, torch::tensor({0, 1, 2})); }, "classes");
  expect_error([&] { cross_entropy(logits.to(torch::kDouble), torch::tensor({0, 1})); }, "logits");
  expect_error([&] { cross_entropy(torch::randn({2, 0}), torch::tensor({0, 1})); },
               "need a class at least");
}

TEST(CrossEntropyOperator, AutocastComputesInF32) {
  const auto logits = torch::randn({2, 3}).to(torch::kBFloat16);
  const auto classes = torch::tensor({0, 1});
  const auto made = under_autocast(at::kBFloat16, [&] { return cross_entropy(logits, classes); });
  EXPECT_EQ(made.scalar_type(), at::kFloat);
  EXPECT_TRUE(made.equal(cross_entropy(logits.to(torch::kFloat), classes)));
}

}  // namespace
}  // namespace trireme::operators
