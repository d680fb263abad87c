#include "trireme/plan/partition/fitting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message(const Model& model, int num_ranks, const PartitionOptions& options) {
  return trireme::test::error_of([&] {
           partition_over_replicas(model.graph, model.profile, make_topology(num_ranks), options);
         })
      .message();
}

/// Changes of which those with some word fit, by the plan's step.
std::vector<std::string> names(
    const PartitionOptions& options,
    const std::function<double(const PartitionOptions&, std::size_t)>& step_ms) {
  const Model model = make_chain(std::vector<ChainNode>(2));
  const FindPlan find_plan = [&](const topology::Topology& topology,
                                 const PartitionOptions& changed) -> std::optional<layout::Plan> {
    const double ms = step_ms(changed, topology.ranks.size());
    if (ms == 0) return std::nullopt;
    layout::Plan plan{.roles = {{"train", {1, 2, 1}, {0, 1}}}, .stages = {{0, 1}, {1, 2}}};
    plan.prediction = Prediction{.step_ms = ms};
    return plan;
  };
  std::vector<std::string> names;
  for (const FittingChange& one :
       fitting_changes(model.profile, make_topology(4), options, find_plan)) {
    names.push_back(one.change);
  }
  return names;
}

TEST(FittingChanges, TheFastestComesFirst) {
  const PartitionOptions options{
      .replicas = 0, .stages = 1, .schedule = "interleaved", .recompute = Recompute::kNone};
  EXPECT_THAT(names(options,
                    [](const PartitionOptions& changed, std::size_t num_ranks) {
                      if (num_ranks > 4) return 0.5;
                      if (changed.recompute == Recompute::kAuto) return 4.0;
                      if (changed.shard_state) return 2.0;
                      if (changed.active_microbatches == 1) return 5.0;
                      if (changed.stages_per_rank == 2) return 0.0;
                      return changed.stages == 0 ? 3.0 : 0.0;
                    }),
              ElementsAre("--shard-state with 2 replicas", "--stages 2", "--recompute auto",
                          "--active-microbatches 1"));
}

TEST(FittingChanges, RanksAreAddedWhereNothingElseDoes) {
  EXPECT_THAT(
      names({}, [](const PartitionOptions&, std::size_t ranks) { return ranks > 4 ? 1.0 : 0.0; }),
      ElementsAre("5 ranks"));
  EXPECT_THAT(
      names({}, [](const PartitionOptions&, std::size_t ranks) { return ranks > 6 ? 1.0 : 0.0; }),
      ElementsAre("8 ranks"));
  EXPECT_THAT(names({}, [](const PartitionOptions&, std::size_t) { return 0.0; }), ElementsAre());
}

/// Activations of 8 microbatches do not fit; those of as many as there are stages do.
TEST(FittingChanges, AreInTheErrorWhereNothingFits) {
  const Model model = make_chain(std::vector<ChainNode>(8, {10, 10, 10, 1000, 1}));
  PartitionOptions options{.batch = {8, 1, 1}, .schedule = "simple", .recompute = Recompute::kNone};
  const layout::Plan wide = partition(model.graph, model.profile, make_topology(2), options);
  options.device_memory_bytes = layout::largest_peak_bytes(wide.prediction->peak_bytes) / 2;
  const std::string text = message(model, 2, options);
  EXPECT_THAT(text, HasSubstr("no plan with 2 stages in 1 replica fits; with "));
  EXPECT_THAT(text, HasSubstr("with one change a plan fits, the fastest first:"));
  EXPECT_THAT(text, HasSubstr("\n  --schedule "));
  EXPECT_THAT(text, HasSubstr("\n  --recompute auto: step "));
  options.device_memory_bytes = 10;
  EXPECT_THAT(message(model, 2, options), HasSubstr("no single change that was tried does"));
}

}  // namespace
}  // namespace trireme::partition
