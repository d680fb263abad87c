#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/trial.h"
#include "trireme/error.h"

namespace trireme::reference {
namespace {

using Gradients = std::map<std::string, at::Tensor>;

/// What one microbatch adds to the step's gradient, by plain autograd.
Gradients gradients_of(const Model& model, const Batch& batch, double seed) {
  for (const auto& [name, tensor] : model.parameters) tensor.mutable_grad() = at::Tensor();
  const Losses losses = model.forward(batch);
  losses[0].value.backward(torch::scalar_tensor(seed, torch::kFloat));
  Gradients result;
  for (const auto& [name, tensor] : model.parameters) result[name] = tensor.grad().clone();
  return result;
}

/// The contract in the plainest words: each lane summed left to right, lanes by a tree that splits
/// at the largest power of two below their number.
at::Tensor tree(const std::vector<at::Tensor>& items, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return items[begin];
  std::size_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return tree(items, begin, begin + left) + tree(items, begin + left, end);
}

at::Tensor expected(const std::vector<Gradients>& parts, const std::string& name, int num_lanes) {
  const std::size_t length = parts.size() / static_cast<std::size_t>(num_lanes);
  std::vector<at::Tensor> lanes;
  for (std::size_t begin = 0; begin < parts.size(); begin += length) {
    at::Tensor sum = parts[begin].at(name).clone();
    for (std::size_t m = begin + 1; m < begin + length; ++m) sum += parts[m].at(name);
    lanes.push_back(sum);
  }
  return tree(lanes, 0, lanes.size());
}

class Lanes : public testing::TestWithParam<int> {};

TEST_P(Lanes, AreFoldedLeftAndCombinedByTheTree) {
  const BatchLayout batch{.global_batch = 24, .microbatch = 2, .lanes = GetParam()};
  Trial trial("mlp", batch);
  const StepRecord step = trial.run_cut({4});
  std::vector<Gradients> parts;
  for (const Batch& microbatch : trial.microbatches(0)) {
    parts.push_back(gradients_of(trial.test.model, microbatch, 2.0 / 24.0));
  }
  for (const auto& [name, gradient] : step.gradients) {
    EXPECT_TRUE(same_bits(gradient, expected(parts, name, GetParam()))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Lanes, testing::Values(1, 2, 3, 4, 6, 12));

TEST(Lanes, OtherNumbersOfLanesRoundOtherwise) {
  Trial one("mlp", {24, 2, 1}), four("mlp", {24, 2, 4});
  EXPECT_NE(difference(one.run_cut({}), four.run_cut({})), "");
}

class Misuse : public testing::Test {
 protected:
  std::string message(const std::vector<Batch>& microbatches) {
    SerialExecutor executor(trial_.recording, trial_.plan, *trial_.store, 0);
    try {
      executor.run_step(0, microbatches);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return "was run";
  }
  Trial trial_{"two_losses", {8, 4, 1}};
};

TEST_F(Misuse, MicrobatchesThatDoNotFitThePlanAreNamed) {
  using testing::HasSubstr;
  auto good = trial_.microbatches(0);
  EXPECT_EQ(message(good), "was run");
  EXPECT_THAT(message({good[0]}), HasSubstr("2 microbatches, got 1"));
  EXPECT_THAT(message({good[0], trial_.test.make_batch(3, 0)}), HasSubstr("has 3 samples"));
  auto uneven = good;
  uneven[1].set("label", good[1]["label"].slice(0, 0, 2));
  EXPECT_THAT(message(uneven), HasSubstr("samples, field '"));
  auto unweighted = good;
  for (Batch& batch : unweighted) batch.set("mask", torch::zeros({4, 3}));
  EXPECT_THAT(message(unweighted), HasSubstr("'regression' add up to 0"));
}

TEST(Copies, ValuesAreRunAgainInTheStageInsteadOfBeingSent) {
  Trial trial("transformer", {12, 3, 2});
  const StepRecord whole = trial.run_cut({});
  // Node 4, the distances between positions, needs no gradient; bias/embedding (5) takes it.
  layout::Plan plan = layout::make_manual_plan(trial.recording.graph, trial.graph_sha256,
                                               std::vector<int>{5}, {12, 3, 2});
  const StepRecord sent = trial.run_plan(plan);
  plan.stages[1].copies = {0, 1, 2, 3, 4};
  EXPECT_EQ(layout::crossings(trial.recording.graph, plan).size(), 0U);
  EXPECT_EQ(difference(whole, sent), "");
  EXPECT_EQ(difference(whole, trial.run_plan(plan)), "");
}

}  // namespace
}  // namespace trireme::reference
