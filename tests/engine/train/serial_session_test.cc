#include "trireme/engine/train/serial_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "trireme/engine/train/construct_workload.h"
#include "trireme/error.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

/// y = w x with the sample's number among its fields.
Workload make(std::int64_t num_samples) {
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  const auto number = torch::arange(num_samples);
  const auto x = torch::linspace(-1, 1, num_samples).unsqueeze(1);
  auto model = make_model(net, [net](const Batch& batch) {
    return (net->forward(batch["x"]) - 3 * batch["x"]).square().mean();
  });
  const auto source = tensor_source({{"x", x}, {"number", number}});
  return {std::move(model), source, source};
}

struct Prepared {
  Workload workload;
  record::Recording recording;
  layout::Plan plan;

  Prepared(Workload made, const BatchLayout& batch)
      : workload(std::move(made)),
        recording(record::record(workload.model,
                                 BatchReader(workload.training, workload.model).maker(),
                                 graph::Mode::kTrain)),
        plan(layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph), {},
                                      batch)) {}
};

TEST(SerialSession, LearnsALine) {
  Prepared run(make(64), {.global_batch = 16, .microbatch = 4, .lanes = 2});
  SerialSession session(run.workload, run.recording, run.plan,
                        {.optimizer = {.name = "sgd", .learning_rate = 0.1, .weight_decay = 0}});
  for (int i = 0; i < 200; ++i) session.step();
  EXPECT_NEAR(run.workload.model.parameters[0].tensor.item<float>(), 3, 1e-3);
}

TEST(SerialSession, ACounterOfSamplesCountsThem) {
  Workload workload = make(16);
  const auto seen = torch::zeros({1}, torch::kLong);
  workload.model.buffers.push_back({"seen", seen});
  workload.model.forward = [inner = workload.model.forward, seen](const Batch& batch) {
    seen.add_(batch["x"].size(0));
    return inner(batch);
  };
  Prepared run(std::move(workload), {.global_batch = 8, .microbatch = 2, .lanes = 1});
  SerialSession session(run.workload, run.recording, run.plan, {});
  session.step();
  session.step();
  EXPECT_EQ(seen.item<std::int64_t>(), 16);
}

TEST(SerialSession, AnEpochMeetsEverySampleOnceInAnOrderOfItsOwn) {
  Prepared run(make(24), {.global_batch = 8, .microbatch = 4, .lanes = 1});
  const SerialSession session(run.workload, run.recording, run.plan, {.seed = 5});
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::int64_t step = 0; step < 6; ++step) {
    for (const Batch& batch : session.microbatches(step)) {
      const auto* numbers = batch["number"].const_data_ptr<std::int64_t>();
      epochs[step / 3].insert(epochs[step / 3].end(), numbers, numbers + batch["number"].size(0));
    }
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (const auto& epoch : epochs) {
    EXPECT_EQ(std::set<std::int64_t>(epoch.begin(), epoch.end()).size(), 24U);
  }
}

TEST(Evaluate, CountsEverySampleOnceWithASmallerLastMicrobatch) {
  Workload workload = make(21);
  const auto recording = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kEval);
  const auto losses = evaluate(workload, recording, 8, 0);
  EXPECT_EQ(losses.losses[0].weight, 21);
  const Batch all = BatchReader(workload.evaluation, workload.model).read(data::IndexRange{0, 21});
  EXPECT_NEAR(losses.total(), workload.model.forward(all)[0].value.item<double>(), 1e-6);
}

TEST(SerialSession, SmallDataAndOddBatchesAreSaidSo) {
  EXPECT_NO_THROW(Prepared(make(3), {.global_batch = 4, .microbatch = 2, .lanes = 1}));
  try {
    Prepared(make(8), {.global_batch = 10, .microbatch = 4, .lanes = 1});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("does not divide"));
  }
  EXPECT_THROW(make_optimizer({.name = "adam"}), Error);
}

TEST(SerialSession, APlanOfAnotherGraphIsRefused) {
  Prepared run(make(8), {.global_batch = 4, .microbatch = 4, .lanes = 1});
  run.plan.graph_sha256[0] = run.plan.graph_sha256[0] == '0' ? '1' : '0';
  run.plan.node_order = {1'000'000};  // Which this graph does not have.
  try {
    SerialSession(run.workload, run.recording, run.plan, {});
    FAIL() << "the plan is not of this graph";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("made for another graph"));
  }
}

TEST(SerialSession, ErrorsCarryTheStep) {
  auto workload = make(8);
  int calls = 0;
  workload.model.forward = [inner = workload.model.forward, &calls](const Batch& batch) {
    auto losses = inner(batch);
    if (++calls > 3) losses[0].value = losses[0].value * 2;
    return losses;
  };
  Prepared run(std::move(workload), {.global_batch = 4, .microbatch = 4, .lanes = 1});
  SerialSession session(run.workload, run.recording, run.plan, {.drift_check_steps = {2}});
  session.step();
  session.step();
  try {
    session.step();
    FAIL() << "drift was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.context().step, 2);
    EXPECT_THAT(error.what(), HasSubstr("mul"));
  }
}

TEST(TensorSource, NamesTheFieldThatDoesNotFit) {
  try {
    tensor_source({{"x", torch::ones({4, 2})}, {"y", torch::ones({5})}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("'y' has 5 samples"));
  }
}

}  // namespace
}  // namespace trireme::train
