#include "trireme/engine/train/verify_plan.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "tests/graphs/random_order.h"
#include "tests/models/models.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

/// The test model with 60 samples of its data, their real numbers of `dtype`.
MakeWorkload workload_of(const std::string& name, at::ScalarType dtype = at::kFloat) {
  return [name, dtype] {
    models::TestModel test = models::make(name);
    for (const auto* tensors : {&test.model.parameters, &test.model.buffers}) {
      for (const NamedTensor& named : *tensors) {
        if (named.tensor.is_floating_point()) named.tensor.set_data(named.tensor.to(dtype));
      }
    }
    std::vector<std::pair<std::string, at::Tensor>> fields;
    const Batch samples = test.make_batch(60, 5);
    for (const auto& [field, tensor] : samples.tensors()) {
      fields.emplace_back(field, tensor.is_floating_point() ? tensor.to(dtype) : tensor);
    }
    return Workload{std::move(test.model), tensor_source(fields), nullptr};
  };
}

layout::Plan plan_of(const MakeWorkload& make_workload, const BatchLayout& batch, bool cut) {
  const Workload workload = construct(make_workload, 0);
  const record::Recording recording = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const auto n = static_cast<int>(recording.graph.nodes.size());
  std::vector<int> cuts;
  for (int c = n / 2; cut && cuts.empty(); ++c) {
    try {
      return layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph),
                                      std::vector<int>{c}, batch);
    } catch (const Error&) {  // no cut allowed here: the next one
    }
  }
  return layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph), {}, batch);
}

void expect_passes(const std::vector<Comparison>& results) {
  for (const Comparison& result : results) {
    EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference << ", loss "
                                 << result.worst_loss << ", gradient " << result.worst_gradient
                                 << ", weight " << result.worst_weight;
  }
}

class Verify : public testing::TestWithParam<std::string> {};

TEST_P(Verify, TwentyStepsOfSgdOnOneLaneAreThoseOfAPlainLoop) {
  const layout::Plan plan = plan_of(workload_of(GetParam()), {12, 3, 1}, true);
  const auto results =
      verify(workload_of(GetParam()), plan,
             {.num_steps = 20, .optimizer = {.name = "sgd", .learning_rate = 0.05}});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(results[1].must_be_bitwise == models::make(GetParam()).is_bitwise_plain);
  expect_passes(results);
}

TEST_P(Verify, TwentyStepsOfSgdOnFourLanesAreCloseToAPlainLoop) {
  // A ReLU is no smooth function: of 20 steps in f32, whose sums round differently here and there,
  // one is enough that flips a unit, and the weights go apart.
  const auto workload = workload_of(GetParam(), GetParam() == "resnet" ? at::kDouble : at::kFloat);
  const layout::Plan plan = plan_of(workload, {32, 8, 4}, true);
  const auto results = verify(
      workload, plan,
      {.num_steps = 20, .optimizer = {.name = "sgd", .learning_rate = 0.002, .momentum = 0}});
  EXPECT_FALSE(results[1].must_be_bitwise);
  expect_passes(results);
}

TEST(VerifyGradients, ThoseOfF64StayF64) {
  const auto workload = workload_of("resnet", at::kDouble);
  const layout::Plan plan = plan_of(workload, {32, 8, 4}, true);
  const auto losses = [&](Dtype dtype) {
    return run_serial(workload, plan, {.num_steps = 3, .gradient_dtype = dtype}).losses;
  };
  EXPECT_EQ(losses(Dtype::kBf16), losses(Dtype::kF32));
}

TEST_P(Verify, AdamwAndClippingOnOneLane) {
  const layout::Plan plan = plan_of(workload_of(GetParam()), {12, 4, 1}, true);
  const auto results = verify(
      workload_of(GetParam()), plan,
      {.num_steps = 5, .optimizer = {.name = "adamw", .learning_rate = 0.01, .clip_norm = 0.5}});
  expect_passes(results);
}

TEST(VerifyCopies, ABiasTableIsUsedOncePerConsumerAndCutsDoNotSendIt) {
  const std::string name = "transformer";
  const Workload workload = construct(workload_of(name), 0);
  const record::Recording recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  layout::Plan copied;
  for (const graph::Node& node : recorded.graph.nodes) {
    if (node.name == "bias/embedding" || node.name == "bias/permute") {
      copied.copied_nodes.push_back(node.id);
    }
  }
  ASSERT_EQ(copied.copied_nodes.size(), 2U);
  const graph::Graph graph = layout::planned_graph(recorded.graph, copied);
  int sites = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    sites += graph.parameters[site.parameter].name == "bias.weight" ? 1 : 0;
  }
  EXPECT_EQ(sites, 3);  // one for each block
  for (int cut = 1; cut < static_cast<int>(graph.nodes.size()); ++cut) {
    if (!graph.nodes[cut].name.ends_with("norm1/layer_norm")) continue;
    layout::Plan plan = layout::make_manual_plan(graph, graph::graph_sha256(recorded.graph),
                                                 std::vector<int>{cut}, {12, 3, 2});
    plan.copied_nodes = copied.copied_nodes;
    const auto results = verify(workload_of(name), plan, {.optimizer = {.name = "sgd"}});
    for (const Comparison& result : results) {
      EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
    }
  }
}

/// Cut in two places, against the recorded order without cuts.
TEST_P(Verify, NodesInAnotherOrderGiveTheSameBits) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Workload workload = construct(workload_of(GetParam()), 0);
  const record::Recording recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const auto order = graph::testing::random_order(random, recorded.graph);
  const graph::Graph graph = graph::reordered(recorded.graph, order);
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> places, cuts;
  for (int c = 1; c < static_cast<int>(graph.nodes.size()); ++c) {
    if (allowed[c]) places.push_back(c);
  }
  std::ranges::sample(places, std::back_inserter(cuts), 2, random);
  layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(recorded.graph), cuts, {12, 3, 2});
  plan.node_order = order;
  const auto results =
      verify(workload_of(GetParam()), plan, {.num_steps = 2, .optimizer = {.name = "sgd"}});
  ASSERT_FALSE(results.empty());
  EXPECT_TRUE(results[0].must_be_bitwise);
  expect_passes(results);
}

INSTANTIATE_TEST_SUITE_P(Models, Verify, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace trireme::train
