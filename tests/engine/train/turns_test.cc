#include "trireme/engine/train/turns.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/engine/train/verify_plan.h"

namespace trireme::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A generator and a discriminator; the second sees the first one's work with and without its graph.
struct Players : torch::nn::Module {
  torch::nn::Sequential generator{torch::nn::Linear(3, 8), torch::nn::Tanh(),
                                  torch::nn::Linear(8, 4)};
  torch::nn::Sequential discriminator{torch::nn::Linear(4, 8), torch::nn::Tanh(),
                                      torch::nn::Linear(8, 1)};

  Players() {
    register_module("generator", generator);
    register_module("discriminator", discriminator);
  }
  at::Tensor seems_true(const at::Tensor& x) { return torch::log_sigmoid(judge(x)); }
  at::Tensor seems_false(const at::Tensor& x) { return torch::log_sigmoid(-judge(x)); }
  at::Tensor judge(const at::Tensor& x) { return discriminator->forward(x).squeeze(1); }

  at::Tensor discriminating(const Batch& batch) {
    const auto made = generator->forward(batch["noise"]).detach();
    return -(seems_true(batch["x"]) + seems_false(made)).mean();
  }
  at::Tensor generating(const Batch& batch) {
    return -seems_true(generator->forward(batch["noise"])).mean();
  }
};

std::shared_ptr<const data::Source> played_samples() {
  return tensor_source({{"x", torch::arange(24 * 4.0).reshape({24, 4}).cos()},
                        {"noise", torch::arange(24 * 3.0).reshape({24, 3}).sin()}});
}

Workload play() {
  const auto players = std::make_shared<Players>();
  return {make_model(players,
                     [raw = players.get()](const Batch& batch) -> Losses {
                       const auto weight = batch["x"].sum() * 0 + batch["x"].size(0);
                       const auto generating = raw->generating(batch);
                       return {mean_loss(raw->discriminating(batch), "d"),
                               sum_loss(generating * weight, weight, "g")};
                     }),
          played_samples(), nullptr};
}

const std::vector<Turn> kTurns = {{{"discriminator.*"}, {"d"}, 2}, {{"generator.*"}, {"g"}}};

record::Recording recorded_play(const Workload& workload) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        graph::Mode::kTrain);
}

std::map<std::string, at::Tensor> values_of(const parameters::ParameterStore& store) {
  std::map<std::string, at::Tensor> values;
  for (const std::string& name : store.names()) values[name] = store.value(name).clone();
  return values;
}

TEST(Turns, ComeOneAfterTheOther) {
  const OptimizerOptions options{.turns = kTurns};
  std::vector<std::string> losses;
  for (int step = 0; step < 7; ++step) losses.push_back(turn_of(options, step)->losses[0]);
  EXPECT_THAT(losses, ElementsAre("d", "d", "g", "d", "d", "g", "d"));
  EXPECT_EQ(turn_of({}, 5), nullptr);
}

TEST(Turns, AreThoseOfTwoOptimizersOfTorch) {
  const Workload workload = construct(play, 3);
  const auto recorded = recorded_play(workload);
  SerialSession session(
      workload, recorded, plan_of({.lanes = 1}, play),
      {.shuffled = false,
       .optimizer = {.learning_rate = 0.05, .weight_decay = 0.1, .turns = kTurns}});
  const Workload plain_workload = construct(play, 3);
  const auto plain = std::static_pointer_cast<std::vector<NamedModule>>(plain_workload.model.owner);
  auto& players = *static_cast<Players*>(plain->front().owner.get());
  const auto adamw = [](const auto& module) {
    return torch::optim::AdamW(module->parameters(),
                               torch::optim::AdamWOptions(0.05).weight_decay(0.1));
  };
  auto discriminator = adamw(players.discriminator), generator = adamw(players.generator);
  const Batch batch = BatchReader(workload.training, workload.model).read({0, 24});
  for (int step = 0; step < 7; ++step) {
    const bool discriminates = step % 3 < 2;
    const auto before = values_of(session.store());
    const StepReport report = session.step();
    EXPECT_EQ(report.losses.losses[discriminates ? 1 : 0].coefficient, 0);
    players.zero_grad();
    const auto loss = discriminates ? players.discriminating(batch) : players.generating(batch);
    loss.backward();
    (discriminates ? discriminator : generator).step();
    EXPECT_NEAR(report.losses.total(), loss.item<double>(), 1e-6);
    for (const auto& [name, value] : before) {
      const bool moves = name.starts_with("discriminator") == discriminates;
      EXPECT_EQ(at::equal(session.store().value(name), value), !moves) << name;
    }
  }
  for (const auto& item : players.named_parameters()) {
    EXPECT_TRUE(torch::allclose(session.store().value(item.key()), item.value(), 1e-5, 1e-7))
        << item.key();
  }
}

TEST(Turns, TheCutModelHasTheBitsOfThePlainLoop) {
  const ComparedSteps options{
      .num_steps = 4,
      .seed = 3,
      .optimizer = {.name = "sgd", .learning_rate = 0.1, .turns = kTurns, .clip_norm = 0.1}};
  for (const Comparison& result : verify(play, plan_of({.stages = 3, .lanes = 1}, play), options)) {
    EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
  }
}

TEST(Turns, HaveTheSameBitsOnRanks) {
  for (const auto& layout :
       {Layout{.stages = 3, .lanes = 1, .schedule = "interleaved"},
        Layout{.stages = 2, .replicas = 2, .lanes = 2, .schedule = "zero_bubble"},
        Layout{
            .stages = 4, .replicas = 2, .lanes = 2, .stages_per_rank = 2, .shards_state = true}}) {
    SCOPED_TRACE(testing::PrintToString(layout));
    const layout::Plan plan = plan_of(layout, play);
    const ComparedSteps options{
        .num_steps = 4, .seed = 3, .optimizer = {.turns = kTurns, .clip_norm = 0.1}};
    const reference::RunRecord reference = run_serial(play, plan, options);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      const Comparison result = verify_rank(world, play, plan, options, reference);
      EXPECT_EQ(first_difference(world, result), "");
    });
  }
}

TEST(Turns, AreReadAndWritten) {
  for (const char* text : {"discriminator.*,loss=d,steps=2", "a|b.?,loss=x,loss=y"}) {
    EXPECT_EQ(to_text(parse_turn(text)), text);
  }
  EXPECT_EQ(parse_turn("a|b.?,loss=x").parameters.size(), 2U);
  for (const char* text : {"", "a", "a,steps=2", ",loss=d", "a,loss=d,steps=two", "a,lose=d"}) {
    EXPECT_THAT(test::error_of([&] { parse_turn(text); }).message(),
                HasSubstr("expected PATTERN,loss=NAME,steps=NUMBER"))
        << text;
  }
}

TEST(Turns, WhatNothingIsCalledIsRefused) {
  const Workload workload = construct(play, 3);
  const auto recorded = recorded_play(workload);
  const auto refusal = [&](Turn turn) {
    return test::error_of([&] {
             SerialSession(workload, recorded, plan_of({.lanes = 1}, play),
                           {.optimizer = {.turns = {std::move(turn)}}});
           })
        .message();
  };
  EXPECT_THAT(refusal({{"generator.*"}, {"adversarial"}}),
              HasSubstr("no loss is called 'adversarial'; there are 'd', 'g'"));
  EXPECT_THAT(refusal({{"critic.*"}, {"d"}}), HasSubstr("no parameter is called like that"));
  EXPECT_THAT(refusal({{"generator.*"}, {"g"}, 0}), HasSubstr("it has no steps"));
}

}  // namespace
}  // namespace trireme::train
