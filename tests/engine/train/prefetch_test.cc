#include "trireme/engine/train/prefetch.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "tests/engine/train/layouts.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

using namespace std::chrono_literals;

/// Samples whose number is their index; counts reads, fails where it is told to.
class Numbers : public data::Source {
 public:
  std::int64_t num_samples() const override { return 40; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    ++num_reads;
    if (sample.index == bad) throw Error(ErrorKind::kIo, "sample " + std::to_string(bad));
    std::this_thread::sleep_for(delay);
    std::memcpy(destinations[0].data(), &sample.index, sizeof sample.index);
  }

  mutable std::atomic<int> num_reads = 0;
  std::int64_t bad = -1;
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
  EXPECT_GT(prefetch.take_waited_seconds(), 0.003);
  for (int i = 1; i < 20; ++i) {
    std::this_thread::sleep_for(20ms);  // computes
    prefetch.take(i / 4, i % 4);
  }
  EXPECT_LT(prefetch.take_waited_seconds(), 0.02);
  EXPECT_LE(setting.source->num_reads, 2 * 22) << "at most two microbatches ahead";
}

TEST(Prefetch, AnErrorComesToWhoTakesTheSample) {
  Setting setting;
  setting.source->bad = setting.reader.read(1, 2)["number"][1].item<std::int64_t>();
  Prefetch prefetch(setting.reader, {0, 1, 2, 3}, 1);
  for (int m = 0; m < 4; ++m) EXPECT_NO_THROW(prefetch.take(0, m));
  EXPECT_NO_THROW(prefetch.take(1, 0));
  EXPECT_NO_THROW(prefetch.take(1, 1));
  EXPECT_THROW(prefetch.take(1, 2), Error);
  EXPECT_NO_THROW(prefetch.take(1, 3));
}

TEST(Prefetch, EndsWhileItReads) {
  Setting setting;
  setting.source->delay = 5ms;
  for (int i = 0; i < 20; ++i) {
    Prefetch prefetch(setting.reader, {0, 1}, 3);
    if (i % 2 == 1) prefetch.take(0, 0);
  }
}

}  // namespace
}  // namespace trireme::train
