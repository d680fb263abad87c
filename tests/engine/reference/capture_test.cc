// A captured stage gives the bits of the same stage run by torch's engine, and what cannot be captured is not.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/trial.h"
#include "trireme/error.h"

namespace trireme::reference {
namespace {

constexpr std::int64_t kSamples = 3;
constexpr BatchLayout kFiveMicrobatches{
    .global_batch = 5 * kSamples, .microbatch = kSamples, .lanes = 1};

struct Outcome {
  StepRecord record;
  int num_replayed = 0;
  std::vector<std::string> refusals;
};

/// Two steps of five microbatches: of the first, the first is listened to, the second compared, the rest replayed.
Outcome run(Trial& trial, const std::vector<int>& cuts, program::Capture capture) {
  trial.plan =
      layout::make_manual_plan(trial.recording.graph, trial.graph_sha256, cuts, kFiveMicrobatches);
  trial.map_to(trial.plan);
  trial.restore_buffers();
  SerialExecutor executor(trial.recording, trial.plan, *trial.store, Trial::kSeed,
                          {.capture = capture});
  Outcome outcome;
  for (const std::int64_t step : {0, 1}) {
    outcome.record.loss += executor.run_step(step, trial.microbatches(step)).total();
    for (const std::string& name : trial.store->names()) {
      outcome.record.gradients[name + "." + std::to_string(step)] =
          trial.gradient(executor, name).clone();
    }
  }
  for (const NamedTensor& buffer : trial.test.model.buffers) {
    outcome.record.buffers[buffer.name] = buffer.tensor.clone();
  }
  for (const program::CaptureReport& report : executor.capture_reports()) {
    outcome.num_replayed += report.num_replayed;
    outcome.refusals.insert(outcome.refusals.end(), report.refusals.begin(), report.refusals.end());
  }
  return outcome;
}

/// Uncut, and in three stages.
void expect_same(Trial& trial, const std::string& name) {
  const std::vector<std::vector<int>> all = {{}, layout::even_cuts(trial.recording.graph, 3)};
  for (const std::vector<int>& cuts : all) {
    const Outcome by_torch = run(trial, cuts, program::Capture::kOff);
    const Outcome replayed = run(trial, cuts, program::Capture::kOn);
    EXPECT_EQ(by_torch.num_replayed, 0);
    EXPECT_EQ(difference(by_torch.record, replayed.record), "")
        << name << ", " << (cuts.empty() ? "uncut" : "cut at " + std::to_string(cuts[0]));
  }
}

TEST(Capture, KeepsTheBitsOfEveryModel) {
  for (const std::string& name : models::names()) {
    Trial trial(name, kFiveMicrobatches);
    expect_same(trial, name);
  }
}

TEST(Capture, StagesOfPlainOperatorsAreReplayed) {
  for (const std::string name : {"mlp", "transformer", "tagger", "two_losses"}) {
    Trial trial(name, kFiveMicrobatches);
    const Outcome outcome = run(trial, {}, program::Capture::kOn);
    EXPECT_EQ(outcome.num_replayed, 1)
        << name << ": " << (outcome.refusals.empty() ? "no refusal" : outcome.refusals[0]);
  }
}

TEST(Capture, StatisticsOfBatchNormsAreLeftToTorch) {
  Trial trial("resnet", kFiveMicrobatches);
  const Outcome outcome = run(trial, {}, program::Capture::kOn);
  EXPECT_EQ(outcome.num_replayed, 0);
  ASSERT_EQ(outcome.refusals.size(), 1U);
  EXPECT_NE(outcome.refusals[0].find("writes a buffer"), std::string::npos) << outcome.refusals[0];
}

}  // namespace
}  // namespace trireme::reference
