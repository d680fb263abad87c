#include "tests/habits/habits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/reference/trial.h"
#include "tests/engine/train/rank_threads.h"
#include "trireme/engine/reference/plain_loop.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"

// The table of tests/habits, row by row: what is recorded gives the bits of the plain model, loss,
// gradients and buffers, cut wherever it may be and over 2 x 2 ranks; what is refused says why.

namespace trireme::train {
namespace {

using habits::Habit, habits::kMicrobatch;
using reference::Trial;

constexpr std::uint64_t kSeed = 3;
constexpr BatchLayout kOneLane{
    .global_batch = 4 * kMicrobatch, .microbatch = kMicrobatch, .lanes = 1};

models::TestModel test_of(const Habit& habit) {
  const Workload workload = construct(habit.make, kSeed);
  const auto samples = BatchReader(workload.training, workload.model).maker();
  const auto make_batch = [samples, model = workload.model](std::int64_t size, std::uint64_t seed) {
    Batch batch = samples(size, seed);
    set_step_scalars(batch, model, 0);
    return batch;
  };
  return {workload.model, make_batch};
}

std::string refusal(const Habit& habit) {
  try {
    const Trial trial(test_of(habit), kOneLane);
  } catch (const Error& error) {
    return error.message();
  }
  return "was recorded";
}

std::vector<int> every_cut(const graph::Graph& graph) {
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> cuts;
  for (std::size_t cut = 0; cut < allowed.size(); ++cut) {
    if (allowed[cut]) cuts.push_back(static_cast<int>(cut));
  }
  return cuts;
}

/// Autograd adds the gradients of several uses, and sparse ones, in another order than the contract
/// says.
bool adds_in_another_order(const graph::Graph& graph) {
  constexpr std::size_t kSparse = 4;  // of aten::embedding
  const auto sites = graph::use_sites(graph);
  return std::any_of(sites.begin(), sites.end(),
                     [](const graph::UseSite& site) { return site.site > 0; }) ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& node) {
           return node.op == "aten::embedding" && node.inputs.at(kSparse) == graph::Argument{true};
         });
}

bool is_close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, /*rtol=*/1e-5, /*atol=*/1e-7, /*equal_nan=*/true);
}

void expect_same_buffers(const Trial& trial, const reference::StepRecord& step) {
  for (const NamedTensor& buffer : trial.test.model.buffers) {
    EXPECT_TRUE(reference::same_bits(step.buffers.at(buffer.name), buffer.tensor)) << buffer.name;
  }
}

void expect_plain_model(Trial& trial, const reference::StepRecord& step) {
  trial.restore_buffers();
  const double loss = reference::PlainLoop(trial.test.model, Trial::kSeed)
                          .run_step(0, trial.microbatches(0))
                          .total();
  EXPECT_EQ(std::memcmp(&loss, &step.loss, sizeof loss), 0) << loss << " and " << step.loss;
  const bool is_rounded = adds_in_another_order(trial.recording.graph);
  for (const auto& [name, tensor] : trial.test.model.parameters) {
    if (!tensor.grad().defined()) continue;
    const at::Tensor plain = tensor.grad().to_dense();
    const auto found = step.gradients.find(name);
    ASSERT_NE(found, step.gradients.end()) << name;
    EXPECT_TRUE(is_rounded ? is_close(found->second, plain)
                           : reference::same_bits(found->second, plain))
        << name;
  }
  expect_same_buffers(trial, step);
}

class Habits : public testing::TestWithParam<Habit> {};

TEST_P(Habits, GivesThePlainModelCutEverywhereOrIsRefusedInWords) {
  const Habit& habit = GetParam();
  if (habit.outcome == habits::Outcome::kRefused) {
    const std::string message = refusal(habit);
    for (const std::string& words : habit.words) {
      EXPECT_THAT(message, testing::HasSubstr(words));
    }
    return;
  }
  Trial trial(test_of(habit), kOneLane);
  const graph::Graph& graph = trial.recording.graph;
  EXPECT_EQ(graph.microbatch, habit.outcome == habits::Outcome::kExact ? kMicrobatch : 0);
  EXPECT_EQ(trial.recording.why_exact.empty(), habit.outcome != habits::Outcome::kExact);
  if (habit.outcome == habits::Outcome::kDrifts) {
    EXPECT_THROW(
        for (int step = 0; step < 100;
             ++step) { record::check_drift(graph, trial.test.model, trial.test.make_batch, step); },
        Error);
    return;
  }
  const std::vector<int> cuts = every_cut(graph);
  EXPECT_FALSE(cuts.empty());
  const reference::StepRecord step = trial.run_cut(cuts);
  expect_plain_model(trial, step);
}

/// Two steps of the habit's workload on ranks, each a thread, against the serial executor's.
void expect_bits_on_ranks(const Habit& habit, int stages, int replicas) {
  const Workload workload = construct(habit.make, kSeed);
  const auto recorded =
      record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                     {.microbatch = kMicrobatch});
  layout::Plan plan = layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                                               layout::even_cuts(recorded.graph, stages),
                                               {4 * kMicrobatch, kMicrobatch, 2});
  layout::set_replicas(plan, replicas);
  const ComparedSteps options{.num_steps = 2, .seed = kSeed, .optimizer = {.name = "sgd"}};
  const reference::RunRecord reference = run_serial(habit.make, plan, options);
  run_ranks(stages * replicas, [&](const collectives::World& world) {
    const Comparison result = verify_rank(world, habit.make, plan, options, reference);
    EXPECT_EQ(first_difference(world, result), "");
  });
}

TEST_P(Habits, GivesTheBitsOfTheSerialExecutorOnTwoByTwoRanks) {
  const Habit& habit = GetParam();
  if (habit.outcome == habits::Outcome::kRefused || habit.outcome == habits::Outcome::kDrifts)
    return;
  if (habit.takes_replicas) {
    expect_bits_on_ranks(habit, 2, 2);
    return;
  }
  expect_bits_on_ranks(habit, 2, 1);
  try {
    expect_bits_on_ranks(habit, 2, 2);
    FAIL() << "took two replicas";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("verify with one replica"));
  }
}

TEST_P(Habits, PassesTheCheckBeforeTheFirstStep) {
  const Habit& habit = GetParam();
  if (habit.outcome == habits::Outcome::kRefused || habit.outcome == habits::Outcome::kDrifts)
    return;
  const Workload workload = construct(habit.make, kSeed);
  const auto recorded =
      record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                     {.microbatch = kMicrobatch});
  const layout::Plan plan = layout::make_manual_plan(
      recorded.graph, graph::graph_sha256(recorded.graph), every_cut(recorded.graph), kOneLane);
  const bool is_compared =
      check_first_step(workload, recorded, plan, {.seed = kSeed}, Logger(LogLevel::kOff));
  EXPECT_EQ(is_compared, habit.name != "loss_that_is_not_finite");
}

const auto kName = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Training, Habits, testing::ValuesIn(habits::training_habits()), kName);
INSTANTIATE_TEST_SUITE_P(Memory, Habits, testing::ValuesIn(habits::memory_habits()), kName);
INSTANTIATE_TEST_SUITE_P(Random, Habits, testing::ValuesIn(habits::random_habits()), kName);
INSTANTIATE_TEST_SUITE_P(Sequences, Habits, testing::ValuesIn(habits::sequence_habits()), kName);
INSTANTIATE_TEST_SUITE_P(Layers, Habits, testing::ValuesIn(habits::layer_habits()), kName);

}  // namespace
}  // namespace trireme::train
