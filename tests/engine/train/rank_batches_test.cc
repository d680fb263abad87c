#include "trireme/engine/train/rank_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/engine/train/layouts.h"
#include "trireme/data/repeated_order.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

using namespace std::chrono_literals;

/// Of the bad sample: when it is read, or when the source is told, which is while another is read; by our exception or
/// another.
enum class NumbersFailure : std::uint8_t { kRead, kTold, kToldByOthers };

/// Samples whose number is their index; counts reads, fails where it is told to.
class Numbers : public data::Source {
 public:
  std::int64_t num_samples() const override { return 40; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    ++num_reads;
    {
      const std::scoped_lock lock(mutex);
      const auto place = std::ranges::find(told, sample.index) - told.begin();
      least_told = std::min(least_told, std::ssize(told) - place / 2 * 2);
    }
    if (sample.index == bad) throw Error(ErrorKind::kIo, "sample " + std::to_string(bad));
    std::this_thread::sleep_for(delay);
    std::memcpy(destinations[0].data(), &sample.index, sizeof sample.index);
  }

  void will_read(std::span<const data::Sample> samples) const override {
    const std::scoped_lock lock(mutex);
    for (const data::Sample& sample : samples) {
      if (sample.index == bad && failure == NumbersFailure::kTold)
        throw Error(ErrorKind::kIo, "told early");
      if (sample.index == bad && failure == NumbersFailure::kToldByOthers)
        throw std::runtime_error("not of ours");
      told.push_back(sample.index);
    }
  }

  mutable std::atomic<int> num_reads = 0;
  mutable std::mutex mutex;  ///< Guards told and least_told.
  mutable std::vector<std::int64_t> told;
  mutable std::int64_t least_told = 1'000;  ///< From the microbatch on that is read, of 2 samples.
  std::int64_t bad = -1;
  NumbersFailure failure = NumbersFailure::kRead;
  std::chrono::microseconds delay{0};

 private:
  std::vector<data::Field> fields_ = {{"number", Dtype::kI64, {}}};
};

struct Setting {
  std::shared_ptr<Numbers> source = std::make_shared<Numbers>();
  Workload workload{{}, source, nullptr};
  StepReader reader{workload, {.global_batch = 8, .microbatch = 2, .lanes = 1}, 5};

  void expect_taken(Prefetch& prefetch, std::int64_t step, std::int64_t microbatch) const {
    EXPECT_TRUE(at::equal(prefetch.take(step, microbatch)["number"],
                          reader.read(step, microbatch)["number"]))
        << step << " " << microbatch;
  }
};

/// In blocks of two batches, each met three times; on the places of a rank as the batch has them.
TEST(StepReader, RepeatsSamplesAsTheSourceAsks) {
  const data::SampleRepeats repeats{.times = 3, .block_samples = 16};
  const Workload workload{{}, data::repeat(std::make_shared<Numbers>(), repeats), nullptr};
  const StepReader reader(workload, {.global_batch = 8, .microbatch = 2, .lanes = 1}, 5);
  const data::RepeatedOrder order(40, 5, data::OrderKind::kShuffled, repeats, 8);
  std::map<std::int64_t, std::vector<std::int64_t>> met;
  for (std::int64_t step = 15; step-- > 0;) {  // an epoch
    for (std::int64_t m = 0; m < 4; ++m) {
      const at::Tensor numbers = reader.read(step, m)["number"];
      for (std::int64_t i = 0; i < 2; ++i) {
        const auto number = numbers[i].item<std::int64_t>();
        EXPECT_EQ(number, order.sample_at(8 * step + 2 * m + i).index);
        met[number].push_back(m);
      }
    }
  }
  EXPECT_EQ(met.size(), 40U);
  for (const auto& [number, microbatches] : met) {
    EXPECT_EQ(microbatches, std::vector(3, microbatches[0])) << number;
  }
}

TEST(Prefetch, GivesWhatTheReaderReads) {
  const Setting setting;
  for (const std::vector<std::int64_t>& order :
       {std::vector<std::int64_t>{2, 3}, {2, 3, 2, 3}, {0}}) {
    Prefetch prefetch(setting.reader, order, 2);
    for (std::int64_t step = 3; step < 9; ++step) {  // beyond the epoch
      for (const std::int64_t m : order) setting.expect_taken(prefetch, step, m);
    }
    setting.expect_taken(prefetch, 1, order.back());  // elsewhere
    setting.expect_taken(prefetch, 2, order.front());
    setting.expect_taken(prefetch, 2, 1);  // nowhere in the order
  }
}

TEST(Prefetch, ReadsAheadOfWhoTakes) {
  Setting setting;
  setting.source->delay = 2ms;
  Prefetch prefetch(setting.reader, {0, 1, 2, 3}, 1);
  prefetch.take(0, 0);
  const StepReading first = prefetch.take_reading();
  EXPECT_GT(first.waited_seconds, 0.003);
  EXPECT_EQ(first.batches_ready, 0.0);
  EXPECT_EQ(prefetch.take_reading().batches_ready, std::nullopt) << "none was asked for";
  for (int i = 1; i < 20; ++i) {
    std::this_thread::sleep_for(20ms);  // computes
    prefetch.take(i / 4, i % 4);
  }
  const StepReading reading = prefetch.take_reading();
  EXPECT_LT(reading.waited_seconds, 0.05) << "reads took 0.076 s";
  EXPECT_GT(reading.read_seconds, 0.07);
  EXPECT_GT(reading.batches_ready.value(), 0.5) << "one at most";
  EXPECT_LE(reading.batches_ready.value(), 1);
  EXPECT_LE(setting.source->num_reads, 2 * 22) << "at most two microbatches ahead";
}

/// Four microbatches are read ahead: of these two while it is held, and all once it is not.
TEST(Prefetch, ReadsHalfAheadWhileItIsHeld) {
  Setting setting;
  Prefetch prefetch(setting.reader, {0, 1, 2, 3}, 4);
  const auto num_ahead = [&] {
    std::this_thread::sleep_for(20ms);
    return setting.source->num_reads / 2;
  };
  prefetch.hold();
  setting.expect_taken(prefetch, 0, 0);  // which reads it once more
  EXPECT_EQ(num_ahead(), 2 + 2) << "two ahead";
  setting.expect_taken(prefetch, 0, 1);
  EXPECT_EQ(num_ahead(), 2 + 2 + 2) << "goes on where it is short";
  prefetch.release();
  EXPECT_EQ(num_ahead(), 2 + 2 + 2 + 2) << "four ahead";
  prefetch.hold();
  for (int m = 2; m < 8; ++m) setting.expect_taken(prefetch, m / 4, m % 4);
}

TEST(Prefetch, AnErrorComesToWhoTakesTheSample) {
  for (const NumbersFailure failure :
       {NumbersFailure::kRead, NumbersFailure::kTold, NumbersFailure::kToldByOthers}) {
    SCOPED_TRACE(static_cast<int>(failure));
    Setting setting;
    setting.source->bad = setting.reader.read(1, 2)["number"][1].item<std::int64_t>();
    setting.source->failure = failure;
    Prefetch prefetch(setting.reader, {0, 1, 2, 3}, 1);
    for (int m = 0; m < 4; ++m) EXPECT_NO_THROW(prefetch.take(0, m));
    EXPECT_NO_THROW(prefetch.take(1, 0));
    EXPECT_NO_THROW(prefetch.take(1, 1));
    EXPECT_THROW(prefetch.take(1, 2), std::exception);
    EXPECT_NO_THROW(prefetch.take(1, 3));
  }
}

/// Each microbatch once, in the order in which they are taken, and the next while one is read.
TEST(Prefetch, TellsTheSourceWhatComesNext) {
  Setting setting;
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 12; ++i) {
    const at::Tensor numbers = setting.reader.read(i / 2, 1 + i % 2)["number"];
    for (int n = 0; n < 2; ++n) expected.push_back(numbers[n].item<std::int64_t>());
  }
  setting.source->told.clear();
  setting.source->least_told = 1'000;
  Prefetch prefetch(setting.reader, {1, 2}, 1);
  for (int i = 0; i < 6; ++i) {
    prefetch.take(i / 2, 1 + i % 2);
    const std::scoped_lock lock(setting.source->mutex);
    const std::vector<std::int64_t>& told = setting.source->told;
    ASSERT_GE(told.size(), 2U * static_cast<std::size_t>(i + 2));
    ASSERT_LE(told.size(), expected.size());
    EXPECT_TRUE(std::equal(told.begin(), told.end(), expected.begin()));
  }
  EXPECT_EQ(setting.source->least_told, 4);
}

TEST(Prefetch, EndsWhileItReads) {
  Setting setting;
  setting.source->delay = 5ms;
  for (int i = 0; i < 20; ++i) {
    Prefetch prefetch(setting.reader, {0, 1}, 3);
    if (i % 2 == 1) prefetch.take(0, 0);
  }
}

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
  const RankStages stages(setting.recording, setting.plan, {0}, setting.sites, {});
  const StepReader reader(setting.workload, setting.plan.batch, 5);
  RankBatches batches(reader, setting.recording, stages, setting.plan, {});
  ASSERT_EQ(stages.weighed_losses(), std::set<int>{kWeighted});
  const auto weights = batches.weigh(0);
  for (int m = 0; m < batches.num_microbatches(); ++m) {
    const Batch batch = batches.take(0, m);
    EXPECT_TRUE(at::equal(batch["x"], reader.read(0, m)["x"])) << "reads once more";
    EXPECT_EQ(weights[m][kWeighted], batch["mask"].sum().item<double>());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the thread that reads ahead
  for (const auto& [sample, count] : setting.source->reads()) EXPECT_LE(count, 2) << sample;
}

// Each of two stages that take fields has the microbatch, in an order of its own; it is read once.
TEST(RankBatches, SeveralStagesOfARankShareWhatIsRead) {
  const WeightedSetting setting(4);
  std::vector<int> readers;
  for (int s = 0; s < 4; ++s) {
    const program::StageProgram stage(setting.recording, setting.plan, s, setting.sites);
    if (!stage.fields().empty()) readers.push_back(s);
  }
  ASSERT_GE(readers.size(), 2U);
  const RankStages stages(setting.recording, setting.plan, readers, setting.sites, {});
  const StepReader reader(setting.workload, setting.plan.batch, 5);
  RankBatches batches(reader, setting.recording, stages, setting.plan, {});
  batches.weigh(0);
  const int num = batches.num_microbatches();
  for (std::size_t s = 0; s < readers.size(); ++s) {
    for (int m = 0; m < num; ++m) {
      EXPECT_TRUE(at::equal(batches.take(0, m)["x"], reader.read(0, m)["x"]));
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int by_this_test = static_cast<int>(readers.size());
  for (const auto& [sample, count] : setting.source->reads()) {
    EXPECT_LE(count, 1 + by_this_test) << sample;
  }
}

TEST(RankBatches, OnlyStagesThatNeedAWeightReadForIt) {
  for (int stage_index = 0; stage_index < 4; ++stage_index) {
    const WeightedSetting setting(4);
    const RankStages stages(setting.recording, setting.plan, {stage_index}, setting.sites, {});
    const StepReader reader(setting.workload, setting.plan.batch, 5);
    RankBatches batches(reader, setting.recording, stages, setting.plan, {});
    const auto weights = batches.weigh(0);
    const bool weighs = !stages.weighed_losses().empty();
    EXPECT_EQ(weighs, stages.losses().contains(kWeighted)) << stage_index;
    for (const auto& one : weights) EXPECT_EQ(std::isnan(one[kWeighted]), !weighs);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (weighs) continue;
    EXPECT_TRUE(setting.source->reads().empty()) << stage_index;
  }
}

}  // namespace
}  // namespace trireme::train
