#include "trireme/engine/program/stage_program.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>

#include "tests/models/models.h"
#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::program {
namespace {

constexpr std::int64_t kSamples = 3;

/// Keeps what it is given, by site.
class Collector : public GradientSink {
 public:
  void accept(int site, const at::Tensor& gradient) override {
    gradients[site].push_back(gradient.clone());
  }
  std::map<int, std::vector<at::Tensor>> gradients;
};

/// A recorded model in stages that are run by hand.
struct Cut {
  Cut(models::TestModel made, int num_stages, graph::Mode mode = graph::Mode::kTrain,
      Capture capture = Capture::kOn)
      : test(std::move(made)), recording(record::record(test.model, test.make_batch, mode)) {
    plan = layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph),
                                    layout::even_cuts(recording.graph, num_stages),
                                    {kSamples, kSamples, 1});
    for (int s = 0; s < num_stages; ++s) stages.emplace_back(recording, plan, s, sites, capture);
  }

  /// All stages forward; what they send goes into `received`.
  std::vector<StageRun> forward(const Batch& batch) {
    received.assign(stages.size(), {});
    std::vector<StageRun> runs;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      runs.push_back(stages[s].forward({batch, {kSamples}, {1, 0, 0}}, received[s]));
      for (const layout::Crossing& crossing : stages[s].sends()) {
        for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
          received[crossing.stages[i]][crossing.value] =
              copy_across(stages[s].value(runs[s], crossing.value));
        }
      }
    }
    return runs;
  }

  ValueMap seeds(int stage) const {
    const std::vector<double> ones(recording.graph.losses.size(), 1.0);
    return loss_seeds(recording.graph, stages[stage], 1, ones);
  }

  models::TestModel test;
  record::Recording recording;
  layout::Plan plan;
  Collector sink;
  SiteTable sites{recording, sink};
  std::vector<StageProgram> stages;
  std::vector<ValueMap> received;
};

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

TEST(StageProgram, WhatOneStageSendsALaterOneReceives) {
  const Cut cut(models::make("unet"), 4);
  std::map<graph::ValueId, int> sent, received;
  for (int s = 0; s < 4; ++s) {
    for (const layout::Crossing& crossing : cut.stages[s].sends()) {
      EXPECT_EQ(crossing.stages.front(), s);
      sent[crossing.value] += static_cast<int>(crossing.stages.size()) - 1;
    }
    for (const layout::Crossing& crossing : cut.stages[s].receives()) {
      EXPECT_LT(crossing.stages.front(), s);
      ++received[crossing.value];
    }
  }
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent, received);
}

TEST(StageProgram, OnlyStagesThatUseTheBatchReadIt) {
  const Cut cut(models::make("mlp"), 3);
  EXPECT_EQ(cut.stages[0].fields(), std::vector<std::string>{"x"});
  EXPECT_TRUE(cut.stages[1].fields().empty());
  EXPECT_EQ(cut.stages[2].fields(), std::vector<std::string>{"label"});
}

TEST(StageProgram, StagesByHandAreThePlainModel) {
  Cut cut(models::make("mlp"), 3);
  const Batch batch = cut.test.make_batch(kSamples, 9);
  std::vector<StageRun> runs = cut.forward(batch);
  const at::Tensor plain = cut.test.model.forward(batch)[0].value;
  const graph::ValueId loss = cut.recording.graph.losses[0].value;
  EXPECT_TRUE(is_same(cut.stages[2].value(runs[2], loss), plain));
  plain.backward();
  ValueMap gradients = cut.stages[2].backward(std::move(runs[2]), cut.seeds(2));
  gradients = cut.stages[1].backward(std::move(runs[1]), gradients);
  EXPECT_TRUE(cut.stages[0].backward(std::move(runs[0]), gradients).empty());  // nothing received
  const auto sites = graph::use_sites(cut.recording.graph);
  ASSERT_EQ(cut.sink.gradients.size(), sites.size());
  for (const auto& [site, taken] : cut.sink.gradients) {
    const std::string name = cut.recording.graph.parameters[sites[site].parameter].name;
    ASSERT_EQ(taken.size(), 1U) << name;
    for (const auto& [known, tensor] : cut.test.model.parameters) {
      EXPECT_TRUE(known != name || is_same(taken[0], tensor.grad())) << name;
    }
  }
}

/// Gradients of sites, and of what the stages received, of a backward in one part or in two.
std::pair<std::map<int, std::vector<at::Tensor>>, std::vector<ValueMap>> backward_by_stage(
    const std::string& model, int num_stages, bool in_two) {
  Cut cut(models::make(model), num_stages);
  std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, 9));
  std::vector<ValueMap> seeds(num_stages), returned;
  for (int s = 0; s < num_stages; ++s) seeds[s] = cut.seeds(s);
  for (int s = num_stages - 1; s >= 0; --s) {
    const ValueMap gradients = in_two ? cut.stages[s].backward_inputs(runs[s], seeds[s])
                                      : cut.stages[s].backward(std::move(runs[s]), seeds[s]);
    if (in_two) {
      cut.stages[s].backward_weights(std::move(runs[s]));
    }
    for (const layout::Crossing& crossing : cut.stages[s].receives()) {
      const auto gradient = gradients.find(crossing.value);
      if (gradient == gradients.end()) continue;
      seeds[layout::previous_in_chain(crossing, s)][crossing.value] = gradient->second;
    }
    returned.push_back(gradients);
  }
  return {std::move(cut.sink.gradients), std::move(returned)};
}

class SplitStages : public testing::TestWithParam<std::string> {};

TEST_P(SplitStages, HaveTheBitsOfOne) {
  for (const int num_stages : {1, 2, 4}) {
    const auto [whole, values] = backward_by_stage(GetParam(), num_stages, false);
    const auto [parts, again] = backward_by_stage(GetParam(), num_stages, true);
    ASSERT_EQ(parts.size(), whole.size());
    for (const auto& [site, gradients] : whole) {
      ASSERT_EQ(parts.at(site).size(), 1U) << "site " << site;
      EXPECT_TRUE(is_same(parts.at(site)[0], gradients.at(0))) << "site " << site;
    }
    ASSERT_EQ(again.size(), values.size());
    for (std::size_t s = 0; s < values.size(); ++s) {
      ASSERT_EQ(again[s].size(), values[s].size());
      for (const auto& [value, gradient] : values[s]) {
        EXPECT_TRUE(is_same(again[s].at(value), gradient)) << "value " << value;
      }
    }
  }
}

struct Replayed {
  std::map<int, std::vector<at::Tensor>> gradients;
  std::vector<ValueMap> returned;
  std::vector<std::string> refusals;
  int num_replayed = 0;
};

/// Six microbatches; where backwards have two parts, the second of one comes after the first of the next.
Replayed run_six(const std::string& model, bool in_two, Capture capture) {
  constexpr int kStages = 3, kMicrobatches = 6;
  Cut cut(models::make(model), kStages, graph::Mode::kTrain, capture);
  Replayed result;
  std::vector<StageRun> before;
  const auto end = [&] {
    for (std::size_t s = 0; s < before.size(); ++s) {
      cut.stages[s].backward_weights(std::move(before[s]));
    }
    before.clear();
  };
  for (std::uint64_t m = 0; m < kMicrobatches; ++m) {
    std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, m));
    std::vector<ValueMap> seeds;
    for (int s = 0; s < kStages; ++s) seeds.push_back(cut.seeds(s));
    for (int s = kStages - 1; s >= 0; --s) {
      const ValueMap gradients = in_two ? cut.stages[s].backward_inputs(runs[s], seeds[s])
                                        : cut.stages[s].backward(std::move(runs[s]), seeds[s]);
      for (const layout::Crossing& crossing : cut.stages[s].receives()) {
        const auto gradient = gradients.find(crossing.value);
        if (gradient == gradients.end()) continue;
        seeds[layout::previous_in_chain(crossing, s)][crossing.value] = gradient->second;
      }
      result.returned.push_back(gradients);
    }
    end();
    if (in_two) before = std::move(runs);
  }
  end();
  for (const StageProgram& stage : cut.stages) {
    const CaptureReport report = stage.capture_report();
    result.num_replayed += report.num_replayed;
    result.refusals.insert(result.refusals.end(), report.refusals.begin(), report.refusals.end());
  }
  result.gradients = std::move(cut.sink.gradients);
  return result;
}

TEST_P(SplitStages, AreReplayedWhereWholeBackwardsAre) {
  const Replayed usual = run_six(GetParam(), false, Capture::kOff);
  const Replayed whole = run_six(GetParam(), false, Capture::kOn);
  const Replayed parts = run_six(GetParam(), true, Capture::kOn);
  EXPECT_EQ(parts.num_replayed, whole.num_replayed);
  EXPECT_EQ(parts.refusals, whole.refusals);
  ASSERT_EQ(parts.gradients.size(), usual.gradients.size());
  for (const auto& [site, gradients] : usual.gradients) {
    ASSERT_EQ(parts.gradients.at(site).size(), gradients.size()) << "site " << site;
    for (std::size_t m = 0; m < gradients.size(); ++m) {
      EXPECT_TRUE(is_same(parts.gradients.at(site)[m], gradients[m]))
          << "site " << site << ", microbatch " << m;
    }
  }
  ASSERT_EQ(parts.returned.size(), usual.returned.size());
  for (std::size_t i = 0; i < usual.returned.size(); ++i) {
    ASSERT_EQ(parts.returned[i].size(), usual.returned[i].size());
    for (const auto& [value, gradient] : usual.returned[i]) {
      EXPECT_TRUE(is_same(parts.returned[i].at(value), gradient)) << "value " << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SplitStages, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

TEST(SplitStage, WeightsOfMatrixProductsWait) {
  Cut cut(models::make("mlp"), 3);
  std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, 9));
  const ValueMap gradients = cut.stages[2].backward_inputs(runs[2], cut.seeds(2));
  cut.stages[1].backward_inputs(runs[1], gradients);
  EXPECT_TRUE(cut.sink.gradients.empty());
  EXPECT_FALSE(runs[1].weight_work.functions.empty());
  cut.stages[1].backward_weights(std::move(runs[1]));
  EXPECT_FALSE(cut.sink.gradients.empty());
}

TEST(StageProgram, AValueOfSeveralStagesIsLeftToTheLastForItsFirstGradient) {
  Cut cut(models::make("transformer"), 4);
  std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, 9));
  std::vector<ValueMap> seeds(4);
  seeds[3] = cut.seeds(3);
  int chained = 0;
  for (int s = 3; s >= 0; --s) {
    const ValueMap gradients = cut.stages[s].backward(std::move(runs[s]), seeds[s]);
    for (const layout::Crossing& crossing : cut.stages[s].receives()) {
      const auto gradient = gradients.find(crossing.value);
      if (gradient == gradients.end()) continue;
      const int to = layout::previous_in_chain(crossing, s);
      chained += to != crossing.stages.front() ? 1 : 0;
      seeds[to][crossing.value] = gradient->second;
    }
  }
  EXPECT_EQ(cut.sink.gradients.size(), graph::use_sites(cut.recording.graph).size());
  EXPECT_GT(chained, 0) << "no value is used by three stages: the test shows nothing";
}

TEST(StageProgram, WithoutSeedsNothingIsComputed) {
  Cut cut(models::make("mlp"), 2);
  std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, 9));
  const graph::ValueId value = cut.stages[0].sends().front().value;
  EXPECT_TRUE(cut.stages[1].backward(std::move(runs[1]), {}).empty());
  EXPECT_TRUE(cut.stages[0].backward(std::move(runs[0]), {{value, at::Tensor()}}).empty());
  EXPECT_TRUE(cut.sink.gradients.empty());
}

TEST(StageProgram, ALossIsSeededWhereItIsUsedLast) {
  const Cut cut(models::make("two_losses"), 3);
  for (std::size_t loss = 0; loss < cut.recording.graph.losses.size(); ++loss) {
    int seeding = 0;
    for (const StageProgram& stage : cut.stages) {
      seeding += stage.seeds_loss(static_cast<int>(loss)) ? 1 : 0;
    }
    EXPECT_EQ(seeding, 1) << cut.recording.graph.losses[loss].name;
  }
}

TEST(StageProgram, EvaluationKeepsNothingForABackward) {
  Cut cut(models::make("mlp"), 2, graph::Mode::kEval);
  const at::NoGradGuard no_grad;
  const std::vector<StageRun> runs = cut.forward(cut.test.make_batch(kSamples, 9));
  EXPECT_TRUE(runs[1].leaves.empty());
  EXPECT_FALSE(cut.stages[1].value(runs[1], cut.recording.graph.losses[0].value).requires_grad());
}

}  // namespace
}  // namespace trireme::program
