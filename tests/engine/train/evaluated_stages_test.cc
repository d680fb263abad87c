#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "tests/engine/train/evaluated.h"
#include "trireme/engine/train/evaluate_ranks.h"

namespace trireme::train {
namespace {

/// Its last node, doubling the loss, takes nothing of the batch; what it weighs is of the batch.
Workload doubled_loss() {
  const auto linear = std::make_shared<torch::nn::LinearImpl>(4, 4);
  Model model = make_model(linear, [linear](const Batch& batch) {
    const auto weight = batch["mask"].sum();
    const auto each = linear->forward(batch["x"]).square() * batch["mask"].unsqueeze(1);
    return sum_loss(each.sum() * 2, weight);
  });
  return {std::move(model),
          tensor_source({{"x", torch::arange(240.0).reshape({60, 4}).sin()},
                         {"mask", torch::arange(60.0).cos().abs()}}),
          nullptr};
}

using CutsOf = std::function<std::vector<int>(const graph::Graph&)>;

/// Expects an evaluation by ranks, a stage each, to have the sums of one process. Returns which rank has read a sample.
std::vector<bool> expect_sums_of_one(const MakeWorkload& make, int num_stages,
                                     const CutsOf& cuts_of) {
  Workload alone = construct(make, 3);
  alone.evaluation = held_out(alone);
  const StepLosses expected =
      evaluate(alone, recorded_in(graph::Mode::kEval, alone), /*microbatch=*/2, /*step=*/0);
  std::vector<bool> has_read(num_stages);
  std::mutex mutex;
  run_ranks(num_stages, [&](const collectives::World& world) {
    Workload workload = construct(make, 3);
    const auto source = held_out(workload);
    workload.evaluation = source;
    const auto evaluation = recorded_in(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    const auto recorded = recorded_in(graph::Mode::kTrain, workload);
    const RankSession session(
        world, workload, recorded,
        layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                                 cuts_of(recorded.graph), {24, 2, 4}),
        {.seed = 3});
    expect_same_losses(evaluate_ranks(world, workload, session, evaluation).losses, expected);
    const std::scoped_lock lock(mutex);
    has_read[world.rank()] = source->was_read;
  });
  return has_read;
}

TEST(EvaluatedStages, OneWithoutFieldsWeighsItsLossByTheSamples) {
  const auto before_last = [](const graph::Graph& graph) {
    return std::vector<int>{static_cast<int>(graph.nodes.size()) - 1};
  };
  EXPECT_THAT(expect_sums_of_one(doubled_loss, 2, before_last), testing::ElementsAre(true, true));
}

/// A counter of batches comes first, and dropout stands between two layers: an evaluation has neither.
Workload counted_and_dropped() {
  struct Net : torch::nn::Module {
    torch::nn::BatchNorm1d norm{4};
    torch::nn::Linear in{4, 4}, out{4, 2};
    Net() {
      register_module("norm", norm);
      register_module("in", in);
      register_module("out", out);
    }
  };
  const auto net = std::make_shared<Net>();
  Model model = make_model(net, [net](const Batch& batch) {
    const auto hidden = net->in(net->norm(batch["x"]));
    return mean_loss(net->out(torch::dropout(hidden, 0.5, net->is_training())).square().mean());
  });
  return {std::move(model), tensor_source({{"x", torch::arange(240.0).reshape({60, 4}).sin()}}),
          nullptr};
}

// A planner made such a stage of the counter, and the run ended at its first evaluation.
TEST(EvaluatedStages, OneMayHaveNothingToEvaluate) {
  expect_sums_of_one(counted_and_dropped, 4, [](const graph::Graph& graph) {
    const auto at = [&](const std::string& part) {
      const auto named = [&](const graph::Node& n) {
        return n.name.find(part) != std::string::npos;
      };
      return static_cast<int>(std::ranges::find_if(graph.nodes, named) - graph.nodes.begin());
    };
    EXPECT_EQ(at("batch_norm"), 1);
    return std::vector<int>{1, at("dropout"), at("out/")};
  });
}

}  // namespace
}  // namespace trireme::train
