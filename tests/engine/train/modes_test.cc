// Code in an opaque node asks the module whether it trains: a recording cannot fix the answer.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/train/rank_threads.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::train {
namespace {

/// Its loss is 1000 times larger while it trains.
struct Moody : torch::nn::Module {
  torch::nn::Linear a{nullptr};
  Opaque scale = opaque("scale", [this](const TensorList& inputs) {
    return TensorList{inputs[0] * (is_training() ? 1000 : 1)};
  });
  Moody() { a = register_module("a", torch::nn::Linear(3, 2)); }
  torch::Tensor forward(const Batch& batch) {
    return scale({torch::sigmoid(a(batch["x"]))})[0].mean();
  }
};

Workload make_moody() {
  const auto data = tensor_source({{"x", torch::linspace(-1, 1, 36).view({12, 3})}});
  return {make_model(std::make_shared<Moody>()), data, data};
}

record::Recording recording_in(const Workload& workload, graph::Mode mode) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        mode);
}

layout::Plan plan_for_one(const graph::Graph& graph) {
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), {}, {4, 2, 1});
}

constexpr double kLargestSigmoid = 1;

TEST(OpaqueMode, IsTrainingInStepsAndNotInEvaluations) {
  const Workload workload = construct(make_moody, 3);
  const auto recorded = recording_in(workload, graph::Mode::kTrain);
  const auto evaluation = recording_in(workload, graph::Mode::kEval);
  SerialSession session(workload, recorded, plan_for_one(recorded.graph), {});
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(session.step().losses.total(), kLargestSigmoid);
    EXPECT_LT(evaluate(workload, evaluation, 2, i).total(), kLargestSigmoid);
  }
}

TEST(OpaqueMode, IsTrainingInStepsOfRanksAndNotInTheirEvaluations) {
  run_ranks(1, [](const collectives::World& world) {
    const Workload workload = construct(make_moody, 3);
    const auto recorded = recording_in(workload, graph::Mode::kTrain);
    const auto evaluation = recording_in(workload, graph::Mode::kEval);
    RankSession session(world, workload, recorded, plan_for_one(recorded.graph), {});
    for (int i = 0; i < 2; ++i) {
      EXPECT_GT(session.step().losses.total(), kLargestSigmoid);
      EXPECT_LT(evaluate_ranks(world, workload, session, evaluation).losses.total(),
                kLargestSigmoid);
    }
  });
}

}  // namespace
}  // namespace trireme::train
