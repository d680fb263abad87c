#include <chrono>
#include <thread>

#include "tests/engine/train/layouts.h"
#include "trireme/plan/simulate/held_messages.h"

namespace trireme::train {
namespace {

/// Samples that one rank is late to read.
class LateSource : public data::Source {
 public:
  LateSource(std::shared_ptr<const data::Source> inner, std::chrono::milliseconds delay)
      : inner_(std::move(inner)), delay_(delay) {}

  std::int64_t num_samples() const override { return inner_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return inner_->fields(); }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    std::this_thread::sleep_for(delay_);
    inner_->read(sample, destinations);
  }

 private:
  std::shared_ptr<const data::Source> inner_;
  std::chrono::milliseconds delay_;
};

/// The most message bytes that each rank of the pipeline may hold.
std::vector<std::int64_t> predicted(const graph::Graph& planned, const layout::Plan& plan) {
  std::vector<std::int64_t> most;
  for (const auto& rank : simulate::held_messages(planned, plan)) {
    most.push_back(0);
    for (const simulate::HeldMessages& held : rank) {
      most.back() = std::max({most.back(), held.during, held.after});
    }
  }
  return most;
}

/// Trains two steps where the last stage, which reads the labels, is late; bytes held by stage.
void expect_no_more_than_predicted(const std::string& schedule, int ranks, int stages_per_rank) {
  const layout::Plan plan = plan_of({.model = "mlp",
                                     .stages = ranks * stages_per_rank,
                                     .schedule = schedule,
                                     .stages_per_rank = stages_per_rank});
  run_ranks(ranks, [&](const collectives::World& world) {
    Workload workload = construct(workload_of("mlp"), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    if (world.rank() == ranks - 1) {
      workload.training =
          std::make_shared<LateSource>(workload.training, std::chrono::milliseconds(3));
    }
    RankSession session(world, workload, recorded, plan, {});
    session.step();
    session.step();
    const auto most = predicted(session.recording().graph, plan);
    EXPECT_LE(session.most_message_bytes(), most[world.rank()]) << schedule << world.rank();
    EXPECT_GT(session.most_message_bytes(), 0);
  });
}

// Every channel was priced as one message out and one in, however many a slow stage lets pile up.
TEST(Messages, BeforeASlowStageTakeNoMoreThanThePlanSays) {
  for (const char* schedule : kSchedules) {
    for (const int ranks : {2, 3, 4}) expect_no_more_than_predicted(schedule, ranks, 1);
  }
  for (const char* schedule : kVirtualSchedules) {
    for (const int ranks : {1, 2, 3}) expect_no_more_than_predicted(schedule, ranks, 2);
  }
}

}  // namespace
}  // namespace trireme::train
