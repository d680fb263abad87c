#include "trireme/engine/train/evaluate_ranks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "tests/engine/train/evaluated.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/plan/schedule/message_limits.h"

namespace trireme::train {
namespace {

TrainingOptions with_averages() {
  return {.seed = 3, .optimizer = {.learning_rate = 0.1, .average_decay = 0.5}};
}

/// Of averages after two steps, and of the step behind it.
struct OfAverages {
  StepLosses evaluated, next;
};

/// What each parameter has been after each step, the first weights before.
using Values = std::vector<std::vector<at::Tensor>>;

void note(const Workload& workload, Values& values) {
  values.emplace_back();
  for (const NamedTensor& parameter : workload.model.parameters) {
    values.back().push_back(parameter.tensor.detach().clone());
  }
}

/// Averages of decay 0.5 by torch, and the losses of a model that has them.
OfAverages evaluate_averages_serially(const Layout& layout) {
  Evaluable prepared(layout.model);
  const Workload& workload = prepared.workload;
  SerialSession session(workload, prepared.training,
                        plan_of({.model = layout.model, .lanes = layout.lanes}), with_averages());
  session.exchange_averages();  // There are none.
  Values values;
  note(workload, values);
  for (int step = 0; step < 2; ++step) {
    session.step();
    note(workload, values);
  }
  const at::NoGradGuard no_grad;
  const auto set = [&](std::size_t p, const at::Tensor& value) {
    at::Tensor tensor = workload.model.parameters[p].tensor;
    tensor.detach().copy_(value);
  };
  OfAverages found;
  for (std::size_t p = 0; p < values[0].size(); ++p) {
    set(p, ((values[0][p] * 0.5 + values[1][p] * 0.5) * 0.5 + values[2][p] * 0.5));
  }
  found.evaluated = evaluate(workload, prepared.evaluation, 2, 2);
  for (std::size_t p = 0; p < values[2].size(); ++p) set(p, values[2][p]);
  EXPECT_NE(found.evaluated.losses[0].sum,
            evaluate(workload, prepared.evaluation, 2, 2).losses[0].sum);
  session.exchange_averages();
  expect_same_losses(evaluate(workload, prepared.evaluation, 2, 2), found.evaluated);
  session.exchange_averages();
  const at::AutoGradMode with_grad(true);
  found.next = session.step().losses;
  return found;
}

class EvaluateRanks : public testing::TestWithParam<Layout> {};

TEST_P(EvaluateRanks, GivesTheSumsOfOneProcess) {
  expect_same_losses(evaluate_on_ranks(GetParam()).losses, evaluate_serially(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, EvaluateRanks,
    testing::Values(Layout{.model = "mlp", .stages = 2, .replicas = 2},
                    Layout{.model = "two_losses", .stages = 4},
                    Layout{.model = "two_losses", .replicas = 4},
                    Layout{.model = "unet", .stages = 4},
                    Layout{.model = "two_losses",
                           .stages = 6,
                           .replicas = 2,
                           .schedule = "interleaved",
                           .stages_per_rank = 3,
                           .shards_parameters = true},
                    Layout{
                        .model = "unet", .stages = 6, .schedule = "v_half", .stages_per_rank = 2},
                    Layout{.model = "resnet", .stages = 2, .replicas = 2},
                    Layout{.model = "two_losses", .stages = 2, .replicas = 2, .each = {1, 2}},
                    Layout{.model = "resnet", .stages = 2, .replicas = 2, .each = {2, 1}},
                    Layout{.model = "two_losses",
                           .stages = 6,
                           .replicas = 4,
                           .schedule = "interleaved",
                           .stages_per_rank = 2,
                           .each = {1, 4, 2}},
                    Layout{.model = "unet", .stages = 2, .replicas = 2, .each = {2, 2}}));

// Shared parameters on several stages, shards of replicas: all who hold a value must see its average.
TEST(EvaluateRanks, AveragesStandInThePlaceOfWeightsForAWhile) {
  for (const Layout& layout :
       {Layout{.model = "transformer", .stages = 4, .replicas = 2, .shards_state = true},
        Layout{.model = "two_losses",
               .stages = 2,
               .replicas = 2,
               .stages_per_rank = 2,
               .shards_parameters = true},
        Layout{.model = "transformer", .stages = 3, .replicas = 4, .each = {2, 1, 4}}}) {
    const OfAverages expected = evaluate_averages_serially(layout);
    const layout::Plan plan = plan_of(layout);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      Evaluable prepared(layout.model);
      RankSession session(world, prepared.workload, prepared.training, plan, with_averages());
      session.step();
      session.step();
      session.exchange_averages();
      const StepLosses losses =
          evaluate_ranks(world, prepared.workload, session, prepared.evaluation).losses;
      session.exchange_averages();
      const StepLosses next = session.step().losses;
      if (world.rank() != 0) return;
      expect_same_losses(losses, expected.evaluated);
      expect_same_losses(next, expected.next);
    });
  }
}

// 8 microbatches: 6 and 2 of two replicas; the last program has one for each.
TEST(EvaluateRanks, InSeveralProgramsTheSumsAreTheSame) {
  const Layout layout{.model = "two_losses", .stages = 2, .replicas = 2};
  expect_same_losses(evaluate_on_ranks(layout, 3).losses, evaluate_serially(layout));
  const Layout uneven{.model = "two_losses", .stages = 2, .replicas = 2, .each = {2, 1}};
  expect_same_losses(evaluate_on_ranks(uneven, 3).losses, evaluate_serially(uneven));
}

// The remainder is less than there are replicas: some have nothing to do in the last program.
TEST(EvaluateRanks, AReplicaWithoutMicrobatchesWaitsForTheOthers) {
  for (const bool shards : {false, true}) {
    const Layout layout{.model = "two_losses",
                        .stages = 2,
                        .replicas = 4,
                        .stages_per_rank = 2,
                        .shards_parameters = shards};
    expect_same_losses(evaluate_on_ranks(layout, 7).losses, evaluate_serially(layout));
  }
  // And one that its rank runs beside others.
  for (const std::vector<int>& each : {std::vector{1, 4}, {4, 2}, {2, 1}}) {
    const Layout layout{.model = "two_losses", .stages = 2, .replicas = 4, .each = each};
    expect_same_losses(evaluate_on_ranks(layout, 7).losses, evaluate_serially(layout));
  }
}

constexpr std::int64_t kWide = std::int64_t{1} << 17;
constexpr std::int64_t kWideMessage = 2 * kWide * 4;  ///< Bytes of a microbatch's.

/// What tensors have held in an evaluation of `wide_and_slow` when its second stage began.
struct Held {
  static constexpr std::int64_t kFar = 16 * kWideMessage;

  std::atomic<bool> is_watched = false;
  std::atomic<std::int64_t> before = 0, most = 0;

  /// Waits, the first time, until there is much, or for a third of a second.
  void look() {
    if (!is_watched) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    const bool is_first = most == 0;
    do {
      most = std::max<std::int64_t>(most, memory::memory_use().live_bytes - before);
      if (is_first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (is_first && most < kFar && std::chrono::steady_clock::now() < end);
  }
};

/// Wide values out of narrow samples; node `slow` takes them, and a parameter, so that it is in the
/// second stage in an evaluation too.
Workload wide_and_slow(Held& held) {
  const auto weight = torch::ones({4, kWide}).requires_grad_();
  const auto scale = torch::ones({1}).requires_grad_();
  const Opaque slow = opaque("slow", [&held](const TensorList& inputs) {
    held.look();
    return TensorList{inputs[0].sum(1) * inputs[1]};
  });
  Model model;
  model.parameters = {{"weight", weight}, {"scale", scale}};
  model.forward = [=](const Batch& batch) -> Losses {
    return {mean_loss(slow({batch["x"].matmul(weight), scale})[0].mean())};
  };
  const auto source = tensor_source({{"x", torch::ones({80, 4})}});
  return {std::move(model), source, source};
}

/// The plan of two stages, the second beginning with `slow`.
layout::Plan plan_of_wide(const graph::Graph& graph) {
  const auto is_slow = [](const graph::Node& n) { return n.name == "slow"; };
  const auto slow = std::ranges::find_if(graph.nodes, is_slow);
  const std::vector<int> cuts = {static_cast<int>(slow - graph.nodes.begin())};
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, {8, 2, 1});
}

// That the program has room for so many is proved (EvaluationProgram); this is what ranks do.
TEST(EvaluateRanks, AFastStageHoldsNoMoreThanTheChannelsLimit) {
  memory::apply_torch_settings();
  Held held;
  int limit = 0;
  run_ranks(2, [&](const collectives::World& world) {
    Workload workload = construct([&] { return wide_and_slow(held); }, 3);
    const auto evaluation = recorded_in(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    const auto recorded = recorded_in(graph::Mode::kTrain, workload);
    const RankSession session(world, workload, recorded, plan_of_wide(recorded.graph), {.seed = 3});
    collectives::require_same(world, "", "what is made");  // on both
    if (world.rank() == 0) held.before = memory::memory_use().live_bytes;
    if (world.rank() == 0) held.is_watched = true;
    const RankEvaluation result = evaluate_ranks(world, workload, session, evaluation);
    if (world.rank() == 0) limit = result.last_part.program.channels.at(0).limit;
  });
  EXPECT_EQ(limit, 1);
  // Sent and not received, received ahead, taken, and made.
  EXPECT_LE(held.most, (limit + schedule::kReceivedAhead + 2) * kWideMessage + (1 << 16));
  EXPECT_GE(held.most, 2 * kWideMessage);
}

/// Cannot read sample 12.
class Broken : public Noticing {
 public:
  using Noticing::Noticing;
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    if (sample.index == 12) throw Error(ErrorKind::kIo, "sample 12 cannot be read");
    Noticing::read(sample, destinations);
  }
};

// What the failing rank still had under way was sent from memory that was gone.
TEST(EvaluateRanks, AFailureOnOneRankIsThatOfAll) {
  const layout::Plan plan = plan_of({.model = "two_losses", .stages = 4});
  std::atomic<int> num_told = 0;
  try {
    run_ranks(4, [&](const collectives::World& world) {
      Workload workload = construct(workload_of("two_losses"), 3);
      workload.evaluation = held_out(workload);
      const auto evaluation = recorded_in(graph::Mode::kEval, workload);
      if (world.rank() == 0) workload.evaluation = std::make_shared<Broken>(workload.evaluation);
      workload.model.set_training(true);
      const auto recorded = recorded_in(graph::Mode::kTrain, workload);
      RankSession session(world, workload, recorded, plan, {.seed = 3});
      session.step();
      try {
        evaluate_ranks(world, workload, session, evaluation);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("sample 12 cannot be read")) << world.rank();
        ++num_told;
        throw;
      }
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.context().operation, testing::HasSubstr("of the evaluation"));
    EXPECT_EQ(error.context().microbatch, 6);
  }
  EXPECT_EQ(num_told, 4);
}

// Every stage read every sample.
TEST(EvaluateRanks, StagesReadOnlyWhatTheyTake) {
  EXPECT_THAT(evaluate_on_ranks({.model = "unet", .stages = 4}).has_read,
              testing::ElementsAre(true, false, false, true));
}

}  // namespace
}  // namespace trireme::train
