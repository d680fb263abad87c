#include "trireme/plan/graph/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "tests/engine/train/varying_words.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/engine/train/serial_session.h"

namespace trireme::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trireme::test::error_of;

record::Recording record_padded(graph::Mode mode, const Workload& workload) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).makers(),
                        {.mode = mode, .sizes = BatchSizes::kAny});
}

TEST(Lengths, ARecordingHoldsForEach) {
  const Workload workload = construct(tagger_workload, 3);
  const record::Recording recorded = record_padded(graph::Mode::kTrain, workload);
  const graph::Graph& graph = recorded.graph;
  EXPECT_EQ(graph.lengths, (data::Lengths{{"words", 16}}));
  ASSERT_EQ(graph.shorter.size(), 2U);
  EXPECT_EQ(graph.shorter[0].lengths, (data::Lengths{{"words", 4}}));
  EXPECT_EQ(graph.shorter[1].lengths, (data::Lengths{{"words", 8}}));
  EXPECT_EQ(graph.shorter[1].values[graph.inputs[0].value].shape[1].fixed, 8);
}

/// A step's microbatches are of several lengths, its samples those that it would have anyway.
TEST(Lengths, AStepHasMicrobatchesOfSeveral) {
  const Workload workload = construct(tagger_workload, 3);
  const record::Recording recorded = record_padded(graph::Mode::kTrain, workload);
  const StepReader reader(workload, {24, 2, 4}, 3);
  const data::SampleOrder order(60, 3);
  for (const int step : {0, 1, 5}) {
    std::multiset<std::int64_t> lengths, expected;
    std::set<int> sizes;
    for (int m = 0; m < 12; ++m) {
      const Batch batch = reader.read(step, m);
      const graph::BatchSize size = reader.size_of(step, m);
      EXPECT_EQ(program::size_of(recorded.graph, batch), size);
      sizes.insert(size.shorter);
      for (const at::Tensor& one : batch["words"].ne(0).sum(1).unbind()) {
        lengths.insert(one.item<std::int64_t>());
      }
    }
    for (int i = 0; i < 24; ++i) {
      expected.insert(Sentences::length_of(order.sample_at(step * 24 + i)));
    }
    EXPECT_EQ(lengths, expected);
    EXPECT_THAT(sizes, ElementsAre(-1, 0, 1));
  }
}

TEST(Lengths, ThreadsThatReadChangeNothing) {
  const Workload workload = construct(tagger_workload, 3);
  const StepReader one(workload, {24, 2, 4}, 3);
  for (const int threads : {2, 3, 8}) {
    const StepReader many(workload, {24, 2, 4}, 3, data::OrderKind::kShuffled,
                          kernels::on_threads(threads));
    for (int m = 0; m < 12; ++m) {
      const Batch batch = many.read(4, m), expected = one.read(4, m);
      for (const auto& [name, tensor] : expected.tensors()) {
        EXPECT_TRUE(at::equal(batch[name], tensor)) << name << " on " << threads;
      }
    }
  }
}

Layout tagger_layout(int stages, int replicas, const std::string& schedule = "interleaved") {
  return {.model = "tagger", .stages = stages, .replicas = replicas, .schedule = schedule};
}

/// Cut or not, the steps are those of the plain loop around the unmodified model.
TEST(Lengths, StepsAreThoseOfThePlainModel) {
  for (const int lanes : {1, 4}) {
    Layout layout = tagger_layout(3, 1);
    layout.lanes = lanes;
    for (const Comparison& result : verify(tagger_workload, plan_of(layout, tagger_workload),
                                           {.seed = 3, .optimizer = {.learning_rate = 0.01}})) {
      EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
    }
  }
}

TEST(Lengths, RanksHaveTheBitsOfTheSerialExecutor) {
  std::vector<Layout> layouts = {tagger_layout(2, 1, "simple"), tagger_layout(2, 2),
                                 tagger_layout(3, 1, "zero_bubble"), tagger_layout(1, 4)};
  layouts[1].recomputes = true;
  layouts[2].offloads = true;
  layouts[3].shards_state = true;
  layouts.push_back(tagger_layout(4, 1, "v_min"));
  layouts.back().stages_per_rank = 2;
  layouts.back().precision = Precision::kBf16;
  for (const Layout& layout : layouts) {
    const MakeWorkload make = with_precision(MakeWorkload(tagger_workload), layout.precision);
    const layout::Plan plan = plan_of(layout, make);
    const ComparedSteps options{
        .num_steps = 2, .seed = 3, .optimizer = {.learning_rate = 0.01, .clip_norm = 0.5}};
    const reference::RunRecord reference = run_serial(make, plan, options);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      EXPECT_EQ(first_difference(world, verify_rank(world, make, plan, options, reference)), "")
          << testing::PrintToString(layout);
    });
  }
}

/// Of 15 samples in microbatches of 2, each padded by itself.
TEST(Lengths, AnEvaluationIsThatOfOneProcess) {
  const auto at_beginning = [](const collectives::World* world, const layout::Plan& plan) {
    const Workload workload = construct(tagger_workload, 3);
    const record::Recording evaluation = record_padded(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    const record::Recording recorded = record_padded(graph::Mode::kTrain, workload);
    if (world == nullptr) return evaluate(workload, evaluation, plan.batch.microbatch, 0);
    const RankSession session(*world, workload, recorded, plan, {.seed = 3});
    return evaluate_ranks(*world, workload, session, evaluation).losses;
  };
  const layout::Plan plan = plan_of(tagger_layout(2, 2), tagger_workload);
  const StepLosses expected = at_beginning(nullptr, plan);
  run_ranks(4, [&](const collectives::World& world) {
    const StepLosses losses = at_beginning(&world, plan);
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      EXPECT_EQ(losses.losses[i].sum, expected.losses[i].sum) << expected.losses[i].name;
      EXPECT_EQ(losses.losses[i].weight, expected.losses[i].weight);
    }
  });
}

bool passes_first_step(const Workload& workload, const record::Recording& recorded) {
  const layout::Plan plan =
      layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                               layout::even_cuts(recorded.graph, 2), {24, 2, 4});
  return check_first_step(workload, recorded, plan, {.seed = 3, .available_bytes = 1 << 30},
                          Logger(LogLevel::kOff));
}

TEST(Lengths, TheFirstStepIsComparedAtEach) {
  const Workload workload = construct(tagger_workload, 3);
  record::Recording recorded = record_padded(graph::Mode::kTrain, workload);
  EXPECT_TRUE(passes_first_step(workload, recorded));
  for (graph::Node& node : recorded.graph.shorter[0].nodes) {
    if (node.op == "aten::dropout") node.inputs[1] = {graph::Real{0, 0.2}};
  }
  EXPECT_THAT(error_of([&] { passes_first_step(workload, recorded); }).message(),
              HasSubstr("The recording is not what the model does"));
}

/// Says what is refused.
std::string refusal_of(const Workload& workload) {
  return error_of([&] { record_padded(graph::Mode::kTrain, workload); }).message();
}

TEST(Lengths, WhatDiffersBeyondNumbersIsRefused) {
  Workload workload = construct(tagger_workload, 3);
  const auto forward = workload.model.forward;
  workload.model.forward = [&](const Batch& batch) {
    Losses losses = forward(batch);
    if (batch["words"].size(1) > 4) losses[1].value = losses[1].value * 2;
    return losses;
  };
  EXPECT_THAT(refusal_of(workload),
              testing::AllOf(HasSubstr("other things at words 4 than at words 16"),
                             HasSubstr("aten::mul")));
  workload.model.forward = [&, table = at::rand({16})](const Batch& batch) {
    Losses losses = forward(batch);
    losses[1].value = losses[1].value * table.narrow(0, 0, batch["words"].size(1)).clone().sum();
    return losses;
  };
  EXPECT_NO_THROW(
      record_padded(graph::Mode::kTrain, workload));  // a constant that is cut by its length
}

TEST(Lengths, OfAnEvaluationAreThoseOfTheTraining) {
  Workload workload = construct(tagger_workload, 3);
  const record::Recording evaluation = record_padded(graph::Mode::kEval, workload);
  workload.evaluation = std::make_shared<Sentences>(15, std::vector<std::int64_t>{16});
  EXPECT_THAT(error_of([&] { evaluate(workload, evaluation, 2, 0); }).message(),
              HasSubstr("padded to other lengths than those of the training"));
}

TEST(Lengths, OneThatNoSampleHasIsRefused) {
  Workload workload = construct(tagger_workload, 3);
  workload.training = std::make_shared<Sentences>(1, std::vector<std::int64_t>{2, 16});
  EXPECT_NO_THROW(record_padded(graph::Mode::kTrain, workload));  // the only sample has one word
  class Long : public Sentences {
   public:
    using Sentences::Sentences;
    data::Lengths lengths_of(data::Sample sample) const override {
      return Sentences::lengths_of({9 + 16 * sample.index});
    }
    void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override {
      Sentences::read({9 + 16 * sample.index}, places);
    }
  };
  workload.training = std::make_shared<Long>(5);
  EXPECT_THAT(refusal_of(workload),
              HasSubstr("no sample is short enough for the padded lengths words 8"));
}

}  // namespace
}  // namespace trireme::train
