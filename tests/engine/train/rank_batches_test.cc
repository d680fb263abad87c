#include "trireme/engine/train/rank_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

/// Counts how often each sample is read.
class Counted : public data::Source {
 public:
  explicit Counted(std::shared_ptr<const data::Source> inner) : inner_(std::move(inner)) {}
  std::int64_t num_samples() const override { return inner_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return inner_->fields(); }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    inner_->read(sample, destinations);
    const std::scoped_lock lock(mutex_);
    ++reads_[sample.index];
  }

  std::map<std::int64_t, int> reads() const {
    const std::scoped_lock lock(mutex_);
    return reads_;
  }

 private:
  std::shared_ptr<const data::Source> inner_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, int> reads_;
};

class NoGradients : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

/// `two_losses` in stages; its second loss has a weight, and is made in the last one.
struct WeightedSetting {
  explicit WeightedSetting(int stages)
      : plan(plan_of({.model = "two_losses", .stages = stages})),
        workload(construct(workload_of("two_losses"), 3)),
        source(std::make_shared<Counted>(workload.training)),
        recording(record::record(workload.model, BatchReader(source, workload.model).maker(),
                                 graph::Mode::kTrain)),
        sites(recording, sink) {
    workload.training = source = std::make_shared<Counted>(workload.training);
  }

  layout::Plan plan;
  Workload workload;
  std::shared_ptr<Counted> source;
  record::Recording recording;
  NoGradients sink;
  program::SiteTable sites;
};

constexpr int kWeighted = 1;

// Every microbatch of the step was read for its weights and again for its forward.
TEST(RankBatches, NoSampleIsReadTwiceInAStep) {
  const WeightedSetting setting(1);
  const program::StageProgram stage(setting.recording, setting.plan, 0, setting.sites);
  const StepReader reader(setting.workload, setting.plan.batch, 5);
  RankBatches batches(reader, setting.recording, stage, setting.plan, 0);
  ASSERT_EQ(stage.weighed_losses(), std::vector<int>{kWeighted});
  const auto weights = batches.weigh(0);
  for (int m = 0; m < batches.num_microbatches(); ++m) {
    const Batch batch = batches.take(0, m);
    EXPECT_TRUE(at::equal(batch["x"], reader.read(0, m)["x"])) << "reads once more";
    EXPECT_EQ(weights[m][kWeighted], batch["mask"].sum().item<double>());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the thread that reads ahead
  for (const auto& [sample, count] : setting.source->reads()) EXPECT_LE(count, 2) << sample;
}

TEST(RankBatches, OnlyStagesThatNeedAWeightReadForIt) {
  for (int stage_index = 0; stage_index < 4; ++stage_index) {
    const WeightedSetting setting(4);
    const program::StageProgram stage(setting.recording, setting.plan, stage_index, setting.sites);
    const StepReader reader(setting.workload, setting.plan.batch, 5);
    RankBatches batches(reader, setting.recording, stage, setting.plan, 0);
    const auto weights = batches.weigh(0);
    const bool weighs = !stage.weighed_losses().empty();
    EXPECT_EQ(weighs, std::ranges::count(stage.losses(), kWeighted) == 1) << stage_index;
    for (const auto& one : weights) EXPECT_EQ(std::isnan(one[kWeighted]), !weighs);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (weighs) continue;
    EXPECT_TRUE(setting.source->reads().empty()) << stage_index;
  }
}

}  // namespace
}  // namespace trireme::train
