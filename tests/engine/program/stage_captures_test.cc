#include "trireme/engine/program/stage_captures.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>

#include "tests/models/models.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/error.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::program {
namespace {

/// Keeps what it is given, in order.
class SiteLog : public GradientSink {
 public:
  void accept(int site, const at::Tensor& gradient) override {
    taken.emplace_back(site, gradient.clone());
  }
  std::vector<std::pair<int, at::Tensor>> taken;
};

/// A model as one stage, with a sink.
struct Staged {
  Staged(models::TestModel made, Capture capture)
      : test(std::move(made)),
        recording(record::record(test.model, test.make_batch, graph::Mode::kTrain)) {
    const layout::Plan plan = layout::make_manual_plan(
        recording.graph, graph::graph_sha256(recording.graph), {}, {3, 3, 1});
    stage = std::make_unique<StageProgram>(recording, plan, 0, sites, capture);
  }

  StageRun forward(const Batch& batch, std::int64_t samples, std::int64_t microbatch) {
    return stage->forward({batch, {samples}, {1, 0, microbatch}}, {});
  }
  void backward(StageRun run, std::int64_t samples, std::vector<double> totals = {}) {
    totals.resize(recording.graph.losses.size(), 1.0);
    stage->backward(std::move(run), loss_seeds(recording.graph, *stage, samples, totals));
  }
  void run(std::uint64_t seed, std::int64_t samples = 3) {
    backward(forward(test.make_batch(samples, seed), samples, 0), samples);
  }
  int num_replayed() const { return stage->capture_report().num_replayed; }
  std::string refusal() const {
    const auto refusals = stage->capture_report().refusals;
    return refusals.empty() ? "" : refusals[0];
  }

  models::TestModel test;
  record::Recording recording;
  SiteLog sink;
  SiteTable sites{recording, sink};
  std::unique_ptr<StageProgram> stage;
};

/// Both with the same gradients, in the same order.
void expect_same(const SiteLog& a, const SiteLog& b) {
  ASSERT_EQ(a.taken.size(), b.taken.size());
  for (std::size_t i = 0; i < a.taken.size(); ++i) {
    EXPECT_EQ(a.taken[i].first, b.taken[i].first);
    const at::Tensor x = a.taken[i].second.contiguous(), y = b.taken[i].second.contiguous();
    ASSERT_EQ(x.sizes(), y.sizes());
    EXPECT_EQ(std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()), 0)
        << "gradient " << i << " of site " << a.taken[i].first;
  }
}

TEST(StageCaptures, TheThirdMicrobatchIsReplayed) {
  Staged staged(models::make("transformer"), Capture::kOn);
  staged.run(0);
  EXPECT_EQ(staged.num_replayed(), 0);
  staged.run(1);
  EXPECT_EQ(staged.num_replayed(), 1);
  StageRun run = staged.forward(staged.test.make_batch(3, 2), 3, 0);
  EXPECT_NE(run.captured, nullptr);
  staged.backward(std::move(run), 3);
}

TEST(StageCaptures, SizesAreCapturedApart) {
  Staged on(models::make("mlp"), Capture::kOn), off(models::make("mlp"), Capture::kOff);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (Staged* one : {&on, &off}) one->run(seed, seed % 2 == 0 ? 3 : 5);
  }
  EXPECT_EQ(on.num_replayed(), 2);
  EXPECT_EQ(off.num_replayed(), 0);
  expect_same(on.sink, off.sink);
}

TEST(StageCaptures, MicrobatchesMayBeInFlightTogether) {
  Staged on(models::make("transformer"), Capture::kOn),
      off(models::make("transformer"), Capture::kOff);
  for (Staged* one : {&on, &off}) {
    std::map<std::int64_t, StageRun> runs;
    for (std::int64_t m = 0; m < 12; ++m) {
      runs[m] = one->forward(one->test.make_batch(3, static_cast<std::uint64_t>(m)), 3, m);
      if (m >= 2) one->backward(std::move(runs[m - 2]), 3);
    }
    for (const std::int64_t m : {11, 10}) one->backward(std::move(runs[m]), 3);
  }
  EXPECT_EQ(on.num_replayed(), 1);
  expect_same(on.sink, off.sink);
}

TEST(StageCaptures, ARunThatIsGivenUpLeavesItsTurnToAnother) {
  Staged staged(models::make("mlp"), Capture::kOn);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    staged.forward(staged.test.make_batch(3, seed), 3, 0);
    staged.run(seed);
  }
  EXPECT_EQ(staged.num_replayed(), 1);
}

void run_in_two_parts(Staged& staged, std::uint64_t seed, double total = 1.0) {
  StageRun run = staged.forward(staged.test.make_batch(3, seed), 3, 0);
  staged.stage->backward_inputs(run, loss_seeds(staged.recording.graph, *staged.stage, 3, {total}));
  staged.stage->backward_weights(std::move(run));
}

/// By microbatch and site: within a microbatch a backward in parts has another order.
SiteLog in_order(SiteLog log, int num_microbatches) {
  const auto num_sites = static_cast<std::ptrdiff_t>(log.taken.size()) / num_microbatches;
  for (int m = 0; m < num_microbatches; ++m) {
    const auto begin = log.taken.begin() + m * num_sites;
    std::stable_sort(begin, begin + num_sites,
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return log;
}

// A stage that is replayed got a schedule whose backwards have two parts.
TEST(StageCaptures, AStageIsCapturedAnewWhereABackwardHasTwoParts) {
  Staged on(models::make("mlp"), Capture::kOn), off(models::make("mlp"), Capture::kOff);
  for (Staged* one : {&on, &off}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) one->run(seed);
    run_in_two_parts(*one, 3);
  }
  EXPECT_EQ(on.num_replayed(), 0);
  for (Staged* one : {&on, &off}) {
    for (std::uint64_t seed = 4; seed < 7; ++seed) run_in_two_parts(*one, seed);
  }
  EXPECT_EQ(on.num_replayed(), 1) << on.refusal();
  expect_same(in_order(on.sink, 7), in_order(off.sink, 7));
}

TEST(StageCaptures, ACaptureInTwoPartsServesWholeBackwardsToo) {
  Staged on(models::make("mlp"), Capture::kOn), off(models::make("mlp"), Capture::kOff);
  for (Staged* one : {&on, &off}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) run_in_two_parts(*one, seed);
    for (std::uint64_t seed = 3; seed < 5; ++seed) one->run(seed);
  }
  EXPECT_EQ(on.num_replayed(), 1) << on.refusal();
  expect_same(in_order(on.sink, 5), in_order(off.sink, 5));
}

// As in a table whose ranks do some backwards whole.
TEST(StageCaptures, BackwardsInOnePartAndInTwoShareACapture) {
  Staged on(models::make("transformer"), Capture::kOn),
      off(models::make("transformer"), Capture::kOff);
  constexpr int kMicrobatches = 8;
  for (Staged* one : {&on, &off}) {
    for (std::uint64_t seed = 0; seed < kMicrobatches; ++seed) {
      if (seed % 2 == 0) {
        one->run(seed);
      } else {
        run_in_two_parts(*one, seed);
      }
    }
  }
  EXPECT_EQ(on.num_replayed(), 1) << on.refusal();
  expect_same(in_order(on.sink, kMicrobatches), in_order(off.sink, kMicrobatches));
}

// A microbatch whose step failed between the parts of its backward.
TEST(StageCaptures, ARunThatEndsBetweenThePartsLeavesItsTurnToAnother) {
  Staged on(models::make("mlp"), Capture::kOn), off(models::make("mlp"), Capture::kOff);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    StageRun run = on.forward(on.test.make_batch(3, seed), 3, 0);
    on.stage->backward_inputs(run, loss_seeds(on.recording.graph, *on.stage, 3, {1.0}));
  }
  EXPECT_EQ(on.num_replayed(), 0);
  for (Staged* one : {&on, &off}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) one->run(seed);
  }
  EXPECT_EQ(on.num_replayed(), 1) << on.refusal();
  expect_same(on.sink, off.sink);
}

TEST(StageCaptures, NothingIsLeftForTheSecondPartWhereNoSampleCounts) {
  Staged staged(models::make("mlp"), Capture::kOn);
  for (std::uint64_t seed = 0; seed < 3; ++seed) run_in_two_parts(staged, seed);
  const std::size_t before = staged.sink.taken.size();
  run_in_two_parts(staged, 3, 0.0);
  EXPECT_EQ(staged.sink.taken.size(), before);
  run_in_two_parts(staged, 4);
  EXPECT_GT(staged.sink.taken.size(), before);
  EXPECT_EQ(staged.num_replayed(), 1);
}

// As in turns of two players, or where no sample of a step counts.
TEST(StageCaptures, ALossWithoutGradientInAStepIsLeftToTorch) {
  for (const std::vector<double>& totals : {std::vector{0.0, 1.0}, {1.0, 0.0}, {0.0, 0.0}}) {
    Staged on(models::make("two_losses"), Capture::kOn),
        off(models::make("two_losses"), Capture::kOff);
    for (Staged* one : {&on, &off}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) one->run(seed);
      one->backward(one->forward(one->test.make_batch(3, 3), 3, 0), 3, totals);
      one->run(4);
    }
    EXPECT_GT(on.sink.taken.size(), 0U);
    expect_same(on.sink, off.sink);
    EXPECT_EQ(on.num_replayed(), totals[0] + totals[1] == 0 ? 1 : 0) << on.refusal();
  }
}

models::TestModel lookup_model() {
  struct Lookup : torch::nn::Module {
    Lookup() { table = register_parameter("table", torch::randn({5, 4})); }
    torch::Tensor forward(const Batch& batch) {
      return table.index_select(0, batch["index"]).square().mean();
    }
    torch::Tensor table;
  };
  return {.model = make_model(std::make_shared<Lookup>()),
          .make_batch = [](std::int64_t size, std::uint64_t seed) {
            Batch batch;
            batch.set("index",
                      torch::full({size}, static_cast<std::int64_t>(seed % 5), torch::kLong));
            return batch;
          }};
}

TEST(StageCaptures, AnErrorNamesTheNodeAsBefore) {
  std::vector<std::string> messages;
  for (const Capture capture : {Capture::kOn, Capture::kOff}) {
    Staged staged(lookup_model(), capture);
    for (std::uint64_t seed = 0; seed < 3; ++seed) staged.run(seed);
    EXPECT_EQ(staged.num_replayed(), capture == Capture::kOn ? 1 : 0) << staged.refusal();
    Batch batch;
    batch.set("index", torch::full({3}, 7, torch::kLong));
    try {
      staged.forward(batch, 3, 0);
      ADD_FAILURE() << "an index beyond the table was taken";
    } catch (const Error& error) {
      messages.push_back(error.message());
    }
    staged.run(4);  // and goes on
  }
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_NE(messages[0].find("index_select"), std::string::npos) << messages[0];
}

TEST(StageCaptures, OpaqueFunctionsAreLeftToTorch) {
  struct WithOpaque : torch::nn::Module {
    WithOpaque() { weight = register_parameter("weight", torch::randn({4})); }
    torch::Tensor forward(const Batch& batch) {
      return (twice({batch["x"] * weight})[0]).square().mean();
    }
    torch::Tensor weight;
    Opaque twice = opaque("twice", [](const TensorList& in) { return TensorList{in[0] * 2}; });
  };
  Staged staged({.model = make_model(std::make_shared<WithOpaque>()),
                 .make_batch =
                     [](std::int64_t size, std::uint64_t seed) {
                       torch::manual_seed(seed);
                       Batch batch;
                       batch.set("x", torch::randn({size, 4}));
                       return batch;
                     }},
                Capture::kOn);
  for (std::uint64_t seed = 0; seed < 4; ++seed) staged.run(seed);
  EXPECT_EQ(staged.num_replayed(), 0);
  EXPECT_NE(staged.refusal().find("opaque"), std::string::npos);
}

}  // namespace
}  // namespace trireme::program
