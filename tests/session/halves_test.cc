#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tests/session/session_fixture.h"
#include "trireme/error.h"
#include "trireme/session.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A model whose loss is the number of the sample.
Workload make_numbered() {
  const auto layer = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto model = make_model(layer, [=](const Batch& batch) {
    return (layer->forward(batch["x"]) * 0).mean() + batch["x"].mean();
  });
  return {std::move(model), tensor_source({{"x", torch::arange(16.0).view({16, 1})}}), nullptr};
}

/// SGD on what `gradients` names: the weights of a run with the library's own.
TEST_F(SessionTest, AnOptimizerOfOnesOwnUpdatesBetweenTheHalves) {
  SessionOptions ours = options(4);
  ours.training.optimizer = {.name = "sgd", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0};
  Session expected(world_, make_two_modules, ours);
  for (int i = 0; i < 4; ++i) expected.step();

  SessionOptions own = ours;
  own.training.optimizer.name = "own";
  Workload made;
  Session session(world_, [&] { return made = make_two_modules(); }, own);
  for (int i = 0; i < 4; ++i) {
    const StepReport report = session.backward();
    EXPECT_EQ(report.step, i);
    EXPECT_EQ(report.microbatch_sums.size(), 4U);
    const torch::NoGradGuard no_grad;
    const auto gradients = session.gradients();
    EXPECT_EQ(gradients.size(), made.model.parameters.size());
    for (auto& [name, tensor] : made.model.parameters) tensor.sub_(0.1 * gradients.at(name));
    session.update();
  }
  const auto found = session.weights();
  for (const auto& [name, value] : expected.weights()) {
    EXPECT_TRUE(torch::allclose(found.at(name), value, 1e-6, 1e-7)) << name;
  }
}

TEST_F(SessionTest, HalvesOfAStepComeInTurn) {
  SessionOptions own = options(2);
  own.training.optimizer.name = "own";
  Session session(world_, make_two_modules, own);
  EXPECT_THAT(refusal([&] { session.update(); }), HasSubstr("come after `backward`"));
  EXPECT_THAT(refusal([&] { session.step(); }), HasSubstr("call `backward`, then `update`"));
  session.backward();
  EXPECT_THAT(refusal([&] { session.backward(); }), HasSubstr("comes after `update`"));
  session.update();
  EXPECT_THAT(refusal([&] { session.gradients(); }), HasSubstr("come after `backward`"));
  EXPECT_EQ(session.next_step(), 1);

  Session other(world_, make_two_modules, options(2));
  EXPECT_THAT(refusal([&] { other.backward(); }), HasSubstr("with the optimizer `own` alone"));
  own.serial = true;
  EXPECT_THAT(refusal([&] { Session(world_, make_two_modules, own); }), HasSubstr("`serial`"));
}

/// The same parameters by another forward: how many labels are met.
TEST_F(SessionTest, AnotherForwardIsEvaluated) {
  Workload made;
  Session session(world_, [&] { return made = make_two_modules(); }, options(3));
  session.step();
  const auto make = [&] {
    Workload workload = made;
    workload.model.forward = [forward = made.model.forward](const Batch& batch) {
      return Losses{
          sum_loss(batch["label"].sum().to(torch::kFloat), (batch["label"] >= 0).sum(), "labels"),
          mean_loss(forward(batch)[0].value, "loss")};
    };
    return workload;
  };
  const RecordedEvaluation recorded = session.record_evaluation(make);
  const Evaluated before = session.evaluate(recorded);
  EXPECT_EQ(before.microbatch_sums.size(), 20U);
  double labels = 0;
  for (const auto& sums : before.microbatch_sums) labels += sums[0];
  EXPECT_EQ(labels, before.losses.losses[0].sum);
  EXPECT_NEAR(before.losses.losses[1].mean(), session.evaluate().losses[0].mean(), 1e-12);
  session.step();
  EXPECT_NE(session.evaluate(recorded).losses.losses[1].sum, before.losses.losses[1].sum);
}

TEST_F(SessionTest, SamplesComeAsTheyLie) {
  SessionOptions wanted = options(2);
  wanted.training.shuffled = false;
  Session session(world_, make_numbered, wanted);
  const StepReport first = session.step();
  EXPECT_THAT(first.microbatch_sums, ElementsAre(ElementsAre(0 + 1), ElementsAre(2 + 3),
                                                 ElementsAre(4 + 5), ElementsAre(6 + 7)));
}

}  // namespace
}  // namespace trireme
