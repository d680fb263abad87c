#include "trireme/engine/pipeline/stage_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>

#include "tests/base/error_of.h"
#include "tests/models/models.h"
#include "trireme/engine/program/boundary_copy.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::pipeline {
namespace {

constexpr std::int64_t kSamples = 3;

/// Keeps gradients in the order in which backwards make them.
class Collector : public program::GradientSink {
 public:
  void accept(int site, const at::Tensor& gradient) override {
    gradients[site].push_back(gradient.clone());
  }
  std::map<int, std::vector<at::Tensor>> gradients;
};

/// The two stages of an mlp, each with its worker.
struct Pair {
  Pair() {
    plan = layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph),
                                    layout::even_cuts(recording.graph, 2),
                                    {2 * kSamples, kSamples, 1});
    for (int s = 0; s < 2; ++s) stages.emplace_back(recording, plan, s, sites);
    for (const program::StageProgram& stage : stages) workers.emplace_back(recording, stage);
    input.sizes = {{kSamples}, {kSamples}};
    input.read = [this](int m) { return test.make_batch(read_samples, 40 + m); };
    for (StageWorker& worker : workers) worker.begin_step(input);
  }

  graph::ValueId crossing() const { return stages[0].sends().front().value; }

  void forward(int microbatch) {
    workers[0].forward(microbatch);
    for (const layout::Crossing& sent : stages[0].sends()) {
      const at::Tensor value = workers[0].value(microbatch, sent.value);
      workers[1].put_value(microbatch, sent.value, program::copy_across(value));
    }
    workers[1].forward(microbatch);
  }

  void backward(int microbatch) {
    workers[1].backward(microbatch, totals);
    for (const layout::Crossing& sent : stages[0].sends()) {
      workers[0].put_gradient(microbatch, sent.value,
                              workers[1].take_gradient(microbatch, sent.value));
    }
    workers[0].backward(microbatch, totals);
  }

  models::TestModel test = models::make("mlp");
  record::Recording recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  layout::Plan plan;
  Collector sink;
  program::SiteTable sites{recording, sink};
  std::vector<program::StageProgram> stages;
  std::vector<StageWorker> workers;
  StepInput input;
  std::vector<double> totals{2.0 * kSamples};
  std::int64_t read_samples = kSamples;
};

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.contiguous().const_data_ptr(),
                                               b.contiguous().const_data_ptr(), a.nbytes()) == 0;
}

TEST(StageWorker, MicrobatchesInFlightDoNotTouchEachOther) {
  Pair one_by_one, together;
  for (int m = 0; m < 2; ++m) {
    one_by_one.forward(m);
    one_by_one.backward(m);
  }
  for (int m = 0; m < 2; ++m) together.forward(m);
  for (int m = 1; m >= 0; --m) together.backward(m);
  ASSERT_FALSE(one_by_one.sink.gradients.empty());
  ASSERT_EQ(one_by_one.sink.gradients.size(), together.sink.gradients.size());
  for (const auto& [site, gradients] : one_by_one.sink.gradients) {
    ASSERT_EQ(gradients.size(), 2U);
    EXPECT_TRUE(is_same(gradients[0], together.sink.gradients[site][1])) << site;
    EXPECT_TRUE(is_same(gradients[1], together.sink.gradients[site][0])) << site;
    EXPECT_FALSE(is_same(gradients[0], gradients[1])) << "both microbatches have the same data";
  }
  EXPECT_EQ(one_by_one.workers[1].loss_sums(), together.workers[1].loss_sums());
}

TEST(StageWorker, SumsOfLossesAreWhereTheyAreMade) {
  Pair pair;
  for (int m = 0; m < 2; ++m) pair.forward(m);
  for (int m = 0; m < 2; ++m) {
    EXPECT_EQ(pair.workers[0].loss_sums()[m], std::vector<double>{0});
    const double plain = pair.test.model.forward(pair.input.read(m))[0].value.item<double>();
    EXPECT_EQ(pair.workers[1].loss_sums()[m], std::vector<double>{kSamples * plain});
  }
}

TEST(StageWorker, AGradientIsHandedOverOnce) {
  Pair pair;
  pair.forward(0);
  pair.workers[1].backward(0, pair.totals);
  EXPECT_TRUE(pair.workers[1].take_gradient(0, pair.crossing()).defined());
  EXPECT_FALSE(pair.workers[1].take_gradient(0, pair.crossing()).defined());
}

TEST(StageWorker, AnAbsentGradientIsNone) {
  Pair pair;
  pair.forward(0);
  pair.workers[0].put_gradient(0, pair.crossing(), at::Tensor());
  pair.workers[0].backward(0, pair.totals);
  EXPECT_TRUE(pair.sink.gradients.empty());
}

TEST(StageWorker, AStepThatBeginsForgetsTheLast) {
  Pair pair;
  for (int m = 0; m < 2; ++m) pair.forward(m);
  for (StageWorker& worker : pair.workers) worker.begin_step(pair.input);
  EXPECT_EQ(pair.workers[1].loss_sums()[0], std::vector<double>{0});
  pair.forward(0);
  pair.backward(0);
  for (const auto& [site, gradients] : pair.sink.gradients) EXPECT_EQ(gradients.size(), 1U);
}

TEST(StageWorker, AnEvaluationKeepsNoMicrobatchBeyondTheNext) {
  Pair pair;
  StageWorker worker(pair.recording, pair.stages[0], StageWorker::Purpose::kEvaluate);
  worker.begin_step(pair.input);
  worker.forward(0);
  EXPECT_TRUE(worker.value(0, pair.crossing()).defined());
  worker.forward(1);
  EXPECT_TRUE(worker.value(1, pair.crossing()).defined());
  EXPECT_THROW(worker.value(0, pair.crossing()), std::out_of_range);
}

TEST(StageWorker, AMicrobatchOfAnotherSizeIsRefused) {
  Pair pair;
  pair.read_samples = kSamples + 1;
  EXPECT_THAT(trireme::test::error_of([&] { pair.workers[0].forward(1); }).message(),
              testing::HasSubstr("microbatch 1 has 4 samples, the plan says 3"));
}

}  // namespace
}  // namespace trireme::pipeline
