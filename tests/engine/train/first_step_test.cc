#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/model.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using trireme::test::error_of;

/// A workload and its recording, to be cut.
struct Subject {
  explicit Subject(const MakeWorkload& make)
      : workload(construct(make, 3)),
        recorded(record::record(workload.model,
                                BatchReader(workload.training, workload.model).maker(),
                                graph::Mode::kTrain)) {}

  layout::Plan plan(int stages) const {
    return plan_cut_at(layout::even_cuts(recorded.graph, stages));
  }

  layout::Plan plan_cut_at(const std::vector<int>& cuts) const {
    return layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph), cuts,
                                    {24, 2, 4});
  }

  bool check(const layout::Plan& plan, std::int64_t available_bytes = 1 << 30) const {
    return check_first_step(workload, recorded, plan,
                            {.seed = 3, .available_bytes = available_bytes},
                            Logger(LogLevel::kOff));
  }

  std::string refusal(const layout::Plan& plan) const {
    return error_of([&] { check(plan); }).message();
  }

  Workload workload;
  record::Recording recorded;
};

class FirstStep : public testing::TestWithParam<std::string> {};

TEST_P(FirstStep, OfThePlansStagesIsThatOfTheModel) {
  const Subject subject(workload_of(GetParam()));
  EXPECT_TRUE(subject.check(subject.plan(1)));
  layout::Plan plan = subject.plan(3);
  layout::set_replicas(plan, 2);
  EXPECT_TRUE(subject.check(plan));
}

TEST_P(FirstStep, LeavesTheModelAsItWas) {
  const Subject subject(workload_of(GetParam()));
  const Model& model = subject.workload.model;
  std::vector<at::Tensor> before;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) before.push_back(tensor.detach().clone());
  }
  const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
  subject.check(subject.plan(2));
  std::size_t next = 0;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      EXPECT_TRUE(reference::same_bits(tensor.detach(), before[next++])) << name;
      EXPECT_FALSE(tensor.grad().defined()) << name;
    }
  }
  EXPECT_TRUE(reference::same_bits(generator, at::detail::getDefaultCPUGenerator().get_state()));
}

// The other ranks waited for all of it, and not longer than their deadline.
TEST_P(FirstStep, GivesASignOfLifeAfterEachRun) {
  const Subject subject(workload_of(GetParam()));
  int signs = 0;
  EXPECT_TRUE(
      check_first_step(subject.workload, subject.recorded, subject.plan(2),
                       {.seed = 3, .available_bytes = 1 << 30, .after_run = [&] { ++signs; }},
                       Logger(LogLevel::kOff)));
  EXPECT_GE(signs, 2);  // the model's own, the stages'
}

INSTANTIATE_TEST_SUITE_P(Models, FirstStep, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

/// The recording says that the value which is sent needs no gradient: the fault that `zeros_like`
/// once led to.
void lose_gradient_at(Subject& subject, int cut) {
  const layout::Plan plan = subject.plan_cut_at({cut});
  for (const layout::Crossing& crossing : layout::crossings(subject.recorded.graph, plan)) {
    subject.recorded.graph.values[crossing.value].requires_grad = false;
  }
}

int middle_cut(const graph::Graph& graph) { return layout::even_cuts(graph, 2).front(); }

TEST(FirstStepFault, AGradientThatACutLosesIsNamedAndTheCutBlamed) {
  Subject subject(workload_of("mlp"));
  const int cut = middle_cut(subject.recorded.graph);
  lose_gradient_at(subject, cut);
  EXPECT_THAT(subject.refusal(subject.plan_cut_at({cut})),
              AllOf(HasSubstr("the gradient of 'first.bias' is missing"),
                    HasSubstr("The cuts are to blame"), HasSubstr("--no-first-step-check")));
}

TEST(FirstStepFault, WhereTiesAllowRoundingALostGradientIsFoundAllTheSame) {
  Subject subject(workload_of("transformer"));
  const int cut = middle_cut(subject.recorded.graph);
  lose_gradient_at(subject, cut);
  EXPECT_THAT(subject.refusal(subject.plan_cut_at({cut})), HasSubstr("The cuts are to blame"));
}

TEST(FirstStepFault, AMissingGradientPassesWhereTheModelDoesNotFit) {
  Subject subject(workload_of("mlp"));
  const int cut = middle_cut(subject.recorded.graph);
  lose_gradient_at(subject, cut);
  EXPECT_FALSE(subject.check(subject.plan_cut_at({cut}), /*available_bytes=*/0));
}

/// What `change` does to a linear model after its recording, and what the check says about it.
struct Changeable : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  torch::Tensor mean = register_buffer("mean", torch::zeros({4}));
  double factor = 1, momentum = 0.5;
  Changeable() {
    a = register_module("a", torch::nn::Linear(3, 4));
    b = register_module("b", torch::nn::Linear(4, 1));
  }
  torch::Tensor forward(const Batch& batch) {
    const auto h = torch::tanh(a(batch["x"]));
    if (is_training()) mean.mul_(momentum).add_(h.detach().mean(0));
    return b(h).mul(factor).square().mean();
  }
};

std::string refusal_after(const std::function<void(Changeable&)>& change) {
  std::shared_ptr<Changeable> host;
  const Subject subject([&host] {
    host = std::make_shared<Changeable>();
    return Workload{make_model(host), tensor_source({{"x", torch::randn({32, 3})}}), nullptr};
  });
  subject.check(subject.plan(2));
  change(*host);
  return subject.refusal(subject.plan(2));
}

TEST(FirstStepFault, AModelThatDoesNotDoWhatWasRecordedIsNamedByWhatDiffersFirst) {
  const std::string blame = "The recording is not what the model does";
  EXPECT_THAT(refusal_after([](Changeable& host) { host.factor = 2; }),
              AllOf(HasSubstr("loss 'loss' is"), HasSubstr(blame)));
  EXPECT_THAT(refusal_after([](Changeable& host) { host.momentum = 0.25; }),
              AllOf(HasSubstr("buffer 'mean' differs"), HasSubstr(blame)));
  EXPECT_THAT(refusal_after([](Changeable& host) { host.a->bias.set_requires_grad(false); }),
              AllOf(HasSubstr("'a.bias' should have no gradient"), HasSubstr(blame)));
}

TEST(FirstStepFault, LossesThatAreNotFiniteAreLeftToTheTraining) {
  const Subject subject([] {
    const auto host = std::make_shared<Changeable>();
    host->factor = std::numeric_limits<double>::infinity();
    return Workload{make_model(host), tensor_source({{"x", torch::randn({32, 3})}}), nullptr};
  });
  EXPECT_FALSE(subject.check(subject.plan(2)));
}

TEST(FirstStepFault, SamplesThatAllWeighNothingAreLeftToTheTraining) {
  const Subject subject([] {
    const auto host = std::make_shared<Changeable>();
    const auto forward = [host](const Batch& batch) {
      const auto y = host->b(torch::tanh(host->a(batch["x"])));
      return sum_loss((y.squeeze(1) * batch["w"]).sum(), batch["w"].sum());
    };
    return Workload{make_model(host, forward),
                    tensor_source({{"x", torch::randn({32, 3})}, {"w", torch::zeros({32})}}),
                    nullptr};
  });
  EXPECT_FALSE(subject.check(subject.plan(2)));
}

}  // namespace
}  // namespace trireme::train
