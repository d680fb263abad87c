// Ranks that run several replicas, and what replicas that differ end with.

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/fed_source.h"

namespace trireme::train {
namespace {

/// Positions with different numbers of ranks: every model with three of these, one of them with several stages on a rank.
std::vector<Layout> uneven_layouts() {
  const std::vector<std::pair<Replicas, std::vector<int>>> kRanks = {
      {{2, 4}, {1, 2}}, {{2, 4}, {2, 1}}, {{4, 4}, {1, 2, 4}}, {{3, 6}, {3, 1}},
      {{4, 4}, {4, 1}}, {{2, 2}, {2, 2}}, {{4, 4}, {2, 1, 2}}, {{3, 3}, {1, 3}},
      {{2, 4}, {2}},    {{6, 6}, {1, 6}}, {{4, 4}, {2, 4}}};
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    for (std::size_t k = 0; k < 3; ++k) {
      const auto& [replicas, each] = kRanks[(3 * m + k) % kRanks.size()];
      const int stages = k == 2 ? 2 : 1;
      result.push_back({.model = models::names()[m],
                        .stages = stages * static_cast<int>(each.size()),
                        .replicas = replicas.replicas,
                        .lanes = replicas.lanes,
                        .schedule = k == 2 ? kVirtualSchedules[m % 5] : kSchedules[(m + k) % 3],
                        .stages_per_rank = stages,
                        .recomputes = m % 4 == 1,
                        .offloads = m % 4 == 2,
                        .gradients = m % 3 == 2 ? Dtype::kBf16 : Dtype::kF32,
                        .each = each});
    }
  }
  return result;
}

class UnevenRanks : public testing::TestWithParam<Layout> {};

TEST_P(UnevenRanks, HaveTheBitsOfTheSerialExecutor) { expect_bits_of_serial_executor(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Covering, UnevenRanks, testing::ValuesIn(uneven_layouts()));

/// As a training loop hands in the rows of a replica.
class HandedIn : public FedSource {
 public:
  explicit HandedIn(std::shared_ptr<const data::Source> inner) : inner_(std::move(inner)) {}
  std::int64_t num_samples() const override { return inner_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return inner_->fields(); }
  void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override {
    inner_->read(sample, places);
  }
  bool has(data::Sample /*sample*/) const override { return true; }

 private:
  std::shared_ptr<const data::Source> inner_;
};

// It has rows of one replica, whatever the rank runs.
TEST(RankSession, RefusesRowsOfOneReplicaForSeveral) {
  const auto start = [](const std::vector<int>& each) {
    const Layout layout{.model = "mlp", .stages = 2, .replicas = 2, .each = each};
    const layout::Plan plan = plan_of(layout);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      Workload workload = construct(workload_of("mlp"), 3);
      const auto recorded =
          record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                         graph::Mode::kTrain);
      workload.training = std::make_shared<HandedIn>(workload.training);
      RankSession session(world, workload, recorded, plan, {});
    });
  };
  EXPECT_NO_THROW(start({1, 1}));
  try {
    start({1, 2});
    FAIL() << "two replicas would train with the same rows";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr("the rows of one replica on each rank"));
  }
}

/// What a training of four replicas ends with where a value of one of them changes after its first
/// step, and `after` follows.
Error error_after_a_change(const std::function<void(RankSession&)>& after,
                           const Layout& layout = {.model = "mlp", .replicas = 4}) {
  const layout::Plan plan = plan_of(layout);
  try {
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      const Workload workload = construct(workload_of("mlp"), 3);
      const auto recorded =
          record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                         graph::Mode::kTrain);
      RankSession session(world, workload, recorded, plan, {});
      session.step();
      EXPECT_NO_THROW(session.check_replicas());
      session.step();
      if (world.rank() == 2) {
        const at::NoGradGuard no_grad;
        session.store().value(session.store().names()[0]).add_(1e-3);
      }
      after(session);
    });
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kCancelled, "nobody saw it"};
}

TEST(RankSession, NamesTheReplicaThatDiffers) {
  const auto error = error_after_a_change([](RankSession& session) { session.step(); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(error.context().step, 2);
  EXPECT_THAT(error.what(), testing::HasSubstr("rank 2 differs from the others"));
}

// The ranks of the first stage, while that of the second has nobody to compare itself with.
TEST(RankSession, NamesTheRankThatDiffersFromThoseOfItsStage) {
  const Layout layout{.model = "mlp", .stages = 2, .replicas = 6, .lanes = 6, .each = {2, 6}};
  for (const bool steps : {false, true}) {
    const auto error = error_after_a_change(
        [&](RankSession& session) { steps ? (void)session.step() : session.check_replicas(); },
        layout);
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 2 differs from the others"));
  }
}

TEST(RankSession, ComparesReplicasAfterItsLastStep) {
  const auto error = error_after_a_change([](RankSession& session) { session.check_replicas(); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(error.context().step, 1);
  EXPECT_THAT(error.what(), testing::HasSubstr("rank 2 differs from the others"));
}

}  // namespace
}  // namespace trireme::train
