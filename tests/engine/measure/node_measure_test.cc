#include "trireme/engine/measure/node_measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <numeric>
#include <set>

#include "tests/engine/measure/measured.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/error.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<at::Tensor> copies(const std::vector<NamedTensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const NamedTensor& item : tensors) result.push_back(item.tensor.clone());
  return result;
}

TEST(NodeMeasureTest, EveryNodeOfEveryModelHasACost) {
  for (const std::string& name : models::names()) {
    SCOPED_TRACE(name);
    const Recorded recorded(name);
    const auto buffers = copies(recorded.model.buffers);
    const NodeCosts costs = recorded.costs();
    ASSERT_EQ(costs.cost_of.size(), recorded.recording.graph.nodes.size());
    double forward = 0, input = 0, weight = 0;
    for (const int index : costs.cost_of) {
      const profile::NodeCost& cost = costs.costs.at(index);
      forward += cost.forward_us;
      input += cost.input_us;
      weight += cost.weight_us;
      EXPECT_GE(cost.kept_bytes, 0) << cost.key;
      EXPECT_GE(cost.forward_workspace_bytes, 0) << cost.key;
    }
    EXPECT_GT(forward, 0);
    EXPECT_GT(input, 0);
    EXPECT_GT(weight, 0);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(torch::equal(buffers[i], recorded.model.buffers[i].tensor));
    }
  }
}

TEST(NodeMeasureTest, IdenticalLayersAreMeasuredOnce) {
  const Recorded recorded("transformer");
  const NodeCosts costs = recorded.costs();
  EXPECT_LT(costs.costs.size(), costs.cost_of.size() / 2);
  const auto cost_of = [&](const char* op, int index) {
    return costs.cost_of[recorded.position_of(op, index)];
  };
  EXPECT_EQ(cost_of("aten::softmax", 0), cost_of("aten::softmax", 2));
  EXPECT_EQ(cost_of("aten::relu_", 0), cost_of("aten::relu_", 1));
  EXPECT_EQ(cost_of("aten::layer_norm", 0), cost_of("aten::layer_norm", 1));
  EXPECT_NE(cost_of("aten::embedding", 0), cost_of("aten::embedding", 1));
  EXPECT_EQ(costs.costs[cost_of("aten::matmul", 0)].key,
            "aten::matmul(f32[8, 7, 16] gradient, f32[16, 48]{1, 16} weight)");
}

using Function = std::function<torch::Tensor(const torch::Tensor&)>;

/// Cost of the `index`-th node `op` in function(linear(x)), linear(x) being [8, 64] floats.
profile::NodeCost cost_of(const std::string& op, const Function& function,
                          const std::shared_ptr<torch::nn::Module>& module = nullptr,
                          int index = 0) {
  torch::nn::Linear linear(64, 64);
  if (module) linear->register_module("probed", module);
  const auto forward = [linear, function](const Batch& batch) mutable {
    return function(linear(batch["x"])).square().mean();
  };
  const Recorded recorded(
      make_model(linear.ptr(), forward),
      [](std::int64_t size, std::uint64_t) {
        Batch batch;
        batch.set("x", torch::randn({size, 64}));
        return batch;
      },
      8);
  const NodeCosts costs = recorded.costs();
  return costs.costs[costs.cost_of.at(recorded.position_of(op, index))];
}

constexpr std::int64_t kElements = 8 * 64;

TEST(NodeMeasureTest, ReluSavesItsOutput) {
  const auto cost = cost_of("aten::relu", [](const auto& x) { return torch::relu(x); });
  EXPECT_THAT(cost.saved_inputs, IsEmpty());
  EXPECT_THAT(cost.saved_outputs, ElementsAre(0));
  EXPECT_EQ(cost.kept_bytes, 0);
  EXPECT_EQ(cost.weight_us, 0);
  EXPECT_GT(cost.input_us, 0);
}

TEST(NodeMeasureTest, InPlaceReluSavesTheMemoryItWrites) {
  const auto cost = cost_of("aten::relu_", [](const auto& x) { return x.clone().relu_(); });
  EXPECT_THAT(cost.saved_outputs, ElementsAre(0));
  EXPECT_EQ(cost.kept_bytes, 0);
  EXPECT_EQ(cost.forward_workspace_bytes, 0);
}

TEST(NodeMeasureTest, ProductsSaveTheirInputs) {
  const auto product = cost_of("aten::mul", [](const auto& x) { return x * torch::tanh(x); });
  EXPECT_THAT(product.saved_inputs, ElementsAre(0, 1));
  EXPECT_THAT(product.saved_outputs, IsEmpty());
  const auto matrix =
      cost_of("aten::matmul", [](const auto& x) { return torch::matmul(x, x.t()); });
  EXPECT_THAT(matrix.saved_inputs, ElementsAre(0, 1));
}

TEST(NodeMeasureTest, LinearSavesInputAndWeightAndMakesBothGradients) {
  const auto second = std::make_shared<torch::nn::LinearImpl>(64, 32);
  const auto function = [second](const auto& x) { return second->forward(x); };
  const auto first = cost_of("aten::addmm", function, second);
  EXPECT_EQ(first.key, "aten::addmm(f32[64] weight, f32[8, 64], f32[64, 64]{1, 64} weight, 1, 1)");
  EXPECT_THAT(first.saved_inputs, ElementsAre(1));  // no gradient of the batch: no use of weights
  EXPECT_EQ(first.input_us, 0);
  EXPECT_GT(first.weight_us, 0);
  const auto other = cost_of("aten::addmm", function, second, 1);
  EXPECT_THAT(other.saved_inputs, ElementsAre(1, 2));
  EXPECT_GT(other.input_us, 0);
  EXPECT_GT(other.weight_us, 0);
}

TEST(NodeMeasureTest, SumsAndViewsSaveNothing) {
  const auto sum = cost_of("aten::add", [](const auto& x) { return x + torch::relu(x); });
  EXPECT_THAT(sum.saved_inputs, IsEmpty());
  EXPECT_THAT(sum.saved_outputs, IsEmpty());
  EXPECT_EQ(sum.kept_bytes, 0);
  const auto view = cost_of("aten::view", [](const auto& x) { return x.view({-1, 8}); });
  EXPECT_THAT(view.saved_inputs, IsEmpty());
  EXPECT_THAT(view.saved_outputs, IsEmpty());
  EXPECT_EQ(view.kept_bytes, 0);
  EXPECT_EQ(view.forward_workspace_bytes, 0);
}

TEST(NodeMeasureTest, DropoutKeepsAMask) {
  const auto cost =
      cost_of("aten::dropout", [](const auto& x) { return torch::dropout(x, 0.5, true); });
  EXPECT_THAT(cost.saved_outputs, IsEmpty());
  EXPECT_GE(cost.kept_bytes, kElements);  // of bools or floats
  EXPECT_LE(cost.kept_bytes, 4 * kElements + 64);
}

TEST(NodeMeasureTest, LayerNormSavesItsInputAndKeepsStatistics) {
  const auto norm = std::make_shared<torch::nn::LayerNormImpl>(torch::nn::LayerNormOptions({64}));
  const auto cost =
      cost_of("aten::layer_norm", [norm](const auto& x) { return norm->forward(x); }, norm);
  EXPECT_THAT(cost.saved_inputs, testing::Contains(0));
  EXPECT_THAT(cost.saved_outputs, IsEmpty());
  EXPECT_EQ(cost.kept_bytes, 2 * 8 * 4);  // mean and inverse deviation of each row
  EXPECT_GT(cost.input_us, 0);
  EXPECT_GT(cost.weight_us, 0);
}

TEST(NodeMeasureTest, OpaqueNodesRunEagerly) {
  const Opaque clipped = opaque("clipped", [](const TensorList& inputs) -> TensorList {
    return {inputs[0].sum().item<float>() > 0 ? inputs[0].exp() : inputs[0].sin()};
  });
  const auto cost = cost_of("opaque", [&](const auto& x) { return clipped({x})[0]; });
  EXPECT_GT(cost.forward_us, 0);
  EXPECT_GT(cost.input_us, 0);
}

TEST(NodeMeasureTest, RefusesWhatItCannotMeasure) {
  models::TestModel test = models::make("mlp");
  const auto recording = record::record(test.model, test.make_batch, graph::Mode::kEval);
  try {
    const Batch batch = test.make_batch(4, 1);
    measure_nodes({recording, batch, BusyRanks()}, quick());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("train mode"));
  }
}

}  // namespace
}  // namespace trireme::measure
