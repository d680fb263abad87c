#include "trireme/engine/train/finite_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <mutex>

#include "tests/base/error_of.h"
#include "tests/engine/train/rank_threads.h"
#include "trireme/engine/checkpoint/tensor_file.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;
using trireme::test::error_of;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Where its scalar is 1, every number is finite; 0 makes the gradient of `b.weight` NaN, -1 the
/// loss `root`. A buffer that counts says which steps were committed.
struct Diverging : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  torch::Tensor count;
  Diverging() {
    a = register_module("a", torch::nn::Linear(1, 4));
    b = register_module("b", torch::nn::Linear(torch::nn::LinearOptions(4, 1).bias(false)));
    count = register_buffer("count", torch::zeros({1}, torch::kLong));
  }
  Losses forward(const Batch& batch) {
    if (is_training()) count.add_(1);
    const auto h = torch::tanh(a->forward(batch["x"]));
    const auto y = b->forward(h).square();
    return {
        mean_loss(y.mean(), "plain"),
        mean_loss(torch::sqrt(b->weight.square().mean() * batch["scalar"]) + 0 * y.mean(), "root")};
  }
};

MakeWorkload fragile(std::function<double(std::int64_t step)> scalar) {
  return [scalar] {
    Model model = make_model(std::make_shared<Diverging>());
    model.step_scalars.push_back({"scalar", scalar});
    return Workload{std::move(model),
                    tensor_source({{"x", torch::linspace(-1, 1, 32).unsqueeze(1)}}), nullptr};
  };
}

double bad_in_step_2(std::int64_t step, double bad) { return step == 2 ? bad : 1; }

struct Outcome {
  std::vector<Error> errors;  ///< By rank.
  bool weights_are_finite = true;
  std::int64_t committed = 0;
  std::int64_t steps = 0;
};

/// What `num_ranks` threads (two stages) end with.
Outcome train(const MakeWorkload& make, int num_ranks, const TrainingOptions& options) {
  Outcome outcome;
  std::mutex mutex;
  const auto body = [&](const collectives::World& world) {
    const Workload workload = construct(make, 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    layout::Plan plan =
        layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                                 layout::even_cuts(recorded.graph, 2), {16, 2, 2});
    layout::set_replicas(plan, num_ranks / 2);
    RankSession session(world, workload, recorded, plan, options);
    Error error(ErrorKind::kCancelled, "trained to the end");
    try {
      for (int step = 0; step < 5; ++step) session.step();
      session.check_finite();
    } catch (const Error& failure) {
      error = failure;
    }
    const std::lock_guard lock(mutex);
    outcome.errors.push_back(error);
    outcome.weights_are_finite = outcome.weights_are_finite && not_finite(session.store()).empty();
    outcome.committed =
        std::max(outcome.committed, workload.model.buffers[0].tensor.item<std::int64_t>());
    outcome.steps = session.next_step();
  };
  run_ranks(num_ranks, body);
  return outcome;
}

// NaN trained on, exit 0.
TEST(NotFinite, ALossEndsTheRunOnAllRanksWithItsName) {
  for (const int ranks : {2, 4}) {
    const Outcome outcome =
        train(fragile([](auto step) { return bad_in_step_2(step, -1); }), ranks, {});
    for (const Error& error : outcome.errors) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      EXPECT_EQ(error.message(), outcome.errors[0].message());
      EXPECT_EQ(error.context().step, 2);
      EXPECT_THAT(error.message(), HasSubstr("loss 'root' is nan in step 2"));
    }
    EXPECT_TRUE(outcome.weights_are_finite);
    EXPECT_EQ(outcome.committed, 2 * 8);
  }
}

TEST(NotFinite, AGradientEndsTheRunOnAllRanksWithItsParameter) {
  for (const auto& [clip, dtype] :
       {std::pair(0.0, Dtype::kF32), std::pair(1.0, Dtype::kF32), std::pair(1.0, Dtype::kBf16)}) {
    const Outcome outcome = train(fragile([](auto step) { return bad_in_step_2(step, 0); }), 4,
                                  {.optimizer = {.clip_norm = clip}, .gradient_dtype = dtype});
    for (const Error& error : outcome.errors) {
      EXPECT_EQ(error.message(), outcome.errors[0].message());
      EXPECT_THAT(error.message(), HasSubstr("the gradient of 'b.weight' is not finite in step 2"));
    }
    EXPECT_TRUE(outcome.weights_are_finite);
    EXPECT_EQ(outcome.committed, 2 * 8);
    EXPECT_EQ(outcome.steps, 2);
  }
}

TEST(NotFinite, GoesOnWhereThatIsAllowed) {
  const Outcome outcome = train(fragile([](auto step) { return bad_in_step_2(step, 0); }), 2,
                                {.allow_nonfinite = true});
  EXPECT_EQ(outcome.errors[0].message(), "trained to the end");
  EXPECT_EQ(outcome.steps, 5);
  EXPECT_FALSE(outcome.weights_are_finite);
}

TEST(NotFinite, TheSerialExecutorEndsAlike) {
  for (const auto& [bad, text] : {std::pair(-1.0, "loss 'root' is nan in step 2"),
                                  std::pair(0.0, "the gradient of 'b.weight' is not finite")}) {
    const Workload workload =
        construct(fragile([bad = bad](auto step) { return bad_in_step_2(step, bad); }), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    const layout::Plan plan = layout::make_manual_plan(
        recorded.graph, graph::graph_sha256(recorded.graph), {}, {16, 2, 2});
    SerialSession session(workload, recorded, plan, {});
    session.step();
    session.step();
    EXPECT_THAT(error_of([&] { session.step(); }).message(), HasSubstr(text));
    EXPECT_EQ(not_finite(session.store()), "");
  }
}

/// The gradient of its weight is 3.4e38: an f32, and more than bf16 can hold.
struct Enormous : torch::nn::Module {
  torch::Tensor weight = register_parameter("weight", torch::full({1}, 1e-38));
  Losses forward(const Batch& batch) {
    return {mean_loss((weight * 3.4e38).sum() + 0 * batch["x"].mean(), "loss")};
  }
};

TEST(NotFinite, WhatRoundsToInfinityIsSeen) {
  const Workload workload{make_model(std::make_shared<Enormous>()),
                          tensor_source({{"x", torch::linspace(-1, 1, 32).unsqueeze(1)}}), nullptr};
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const layout::Plan plan =
      layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph), {}, {16, 2, 2});
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    SerialSession session(workload, recorded, plan,
                          {.optimizer = {.learning_rate = 0}, .gradient_dtype = dtype});
    if (dtype == Dtype::kF32) {
      EXPECT_NO_THROW(session.step());
    } else {
      EXPECT_THAT(error_of([&] { session.step(); }).message(),
                  HasSubstr("the gradient of 'weight' is not finite in step 0"));
    }
  }
}

// Its gradients are finite, its update is not: step 0 was the last, exit 0.
TEST(NotFinite, AnUpdateThatOverflowsIsSeenAtTheEnd) {
  const Outcome outcome =
      train(fragile([](auto) { return 1; }), 2,
            {.optimizer = {.name = "sgd", .learning_rate = 3e38, .weight_decay = 1}});
  EXPECT_EQ(outcome.errors[0].kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(outcome.errors[0].message(), outcome.errors[1].message());
  EXPECT_EQ(error_of([] { make_optimizer({.learning_rate = 1e308}); }).kind(),
            ErrorKind::kInvalidArgument);
}

TEST(NotFinite, MetricsMayBe) {
  StepLosses losses{{{"metric", kInfinite, 1, 0}, {"loss", 1, 1, 1}}};
  EXPECT_EQ(not_finite(losses), "");
  losses.losses[1].sum = -kInfinite;
  EXPECT_EQ(not_finite(losses), "loss 'loss' is -inf");
}

TEST(NotFinite, TensorsOfAllKindsAreLookedAt) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    for (const int size : {1, 7, 4096, 10000}) {
      const auto tensor = torch::ones({size}, dtype);
      EXPECT_TRUE(checkpoint::is_finite(tensor));
      for (const double bad : {kInfinite, -kInfinite, std::nan("")}) {
        tensor[size - 1] = bad;
        EXPECT_FALSE(checkpoint::is_finite(tensor)) << dtype << " " << size << " " << bad;
      }
    }
  }
  EXPECT_TRUE(checkpoint::is_finite(torch::ones({3}, torch::kLong)));
  EXPECT_TRUE(checkpoint::is_finite(torch::empty({0})));
  const auto matrix = torch::zeros({4, 4});
  matrix[3][1] = kInfinite;
  EXPECT_FALSE(checkpoint::is_finite(matrix.t()));
  EXPECT_TRUE(checkpoint::is_finite(matrix.narrow(0, 0, 3)));
}

}  // namespace
}  // namespace trireme::train
