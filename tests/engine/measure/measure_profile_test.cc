#include "trireme/engine/measure/measure_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/engine/measure/measured.h"
#include "tests/engine/measure/ranks.h"
#include "trireme/engine/measure/range_measure.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/profile/profile_json.h"

namespace trireme::measure {
namespace {

using testing::SizeIs;

class NoSink : public program::GradientSink {
 public:
  void accept(int, const at::Tensor&) override {}
};

/// Live bytes that a forward of the whole graph leaves behind for its backward.
std::int64_t bytes_left_by_forward(const Recorded& recorded) {
  const graph::Graph& graph = recorded.recording.graph;
  const auto plan =
      layout::make_manual_plan(graph, "", {}, {recorded.microbatch, recorded.microbatch, 1});
  NoSink sink;
  const program::SiteTable sites(recorded.recording, sink);
  const program::StageProgram stage(recorded.recording, plan, 0, sites);
  const program::MicrobatchInput input{recorded.batch, {recorded.microbatch}, {0, 0, 0}};
  stage.forward(input, {});  // lays out the arguments
  const std::int64_t before = memory::memory_use().live_bytes;
  const program::StageRun run = stage.forward(input, {});
  return memory::memory_use().live_bytes - before;
}

/// The same from the costs of nodes: each memory once, that of parameters and the batch not.
std::int64_t predicted_bytes(const Recorded& recorded, const NodeCosts& costs) {
  const graph::Graph& graph = recorded.recording.graph;
  std::map<int, std::int64_t> storage_bytes;
  std::set<int> outside, saved;
  for (const graph::Value& value : graph.values) {
    if (value.source != graph::ValueSource::kNode) outside.insert(value.storage_id);
    std::int64_t& bytes = storage_bytes[value.storage_id];
    bytes = std::max(bytes, graph::bytes_at(value, recorded.microbatch));
  }
  std::int64_t total = 0;
  for (std::size_t p = 0; p < graph.nodes.size(); ++p) {
    const profile::NodeCost& cost = costs.costs[costs.cost_of[p]];
    const auto inputs = graph::input_values(graph.nodes[p]);
    for (const int i : cost.saved_inputs) saved.insert(graph.values[inputs[i]].storage_id);
    for (const int i : cost.saved_outputs) {
      saved.insert(graph.values[graph.nodes[p].outputs[i]].storage_id);
    }
    total += cost.kept_bytes;
  }
  for (const int storage : saved) total += outside.contains(storage) ? 0 : storage_bytes[storage];
  return total;
}

TEST(ProfileTest, BytesKeptByNodesAreWhatAForwardLeavesBehind) {
  for (const std::string& name : models::names()) {
    const Recorded recorded(models::make(name), 32);
    const auto measured = static_cast<double>(bytes_left_by_forward(recorded));
    const auto predicted = static_cast<double>(predicted_bytes(recorded, recorded.costs()));
    EXPECT_NEAR(predicted, measured, 0.05 * measured) << name;
  }
}

/// Of a microbatch, forward and backward, beyond what lies in memory anyway.
std::int64_t peak_bytes(const Recorded& recorded, program::Capture capture) {
  RangeRuns runs(recorded.subject(), {}, capture);
  runs.backward(runs.forward());
  EXPECT_EQ(runs.is_captured(), capture == program::Capture::kOn);
  const std::int64_t before = memory::memory_use().live_bytes;
  memory::reset_peak();
  runs.backward(runs.forward());
  return memory::memory_use().peak_bytes - before;
}

TEST(ProfileTest, ReplaysTakeTheMemoryThatAutogradTakes) {
  // Activations are most of the first three's memory, gradients of the last one's.
  const std::vector<std::pair<std::string, std::int64_t>> microbatches = {
      {"mlp", 1024}, {"transformer", 1024}, {"tagger", 1024}, {"wide", 2}};
  for (const auto& [name, microbatch] : microbatches) {
    const Recorded recorded(models::make(name), microbatch);
    const auto usual = static_cast<double>(peak_bytes(recorded, program::Capture::kOff));
    const auto replayed = static_cast<double>(peak_bytes(recorded, program::Capture::kOn));
    EXPECT_LE(replayed, 1.05 * usual + (64 << 10)) << name;  // small buffers share a block
  }
}

/// An optimizer without state.
void update(const at::Tensor& value, const at::Tensor& gradient) {
  value.sub_(gradient, /*alpha=*/0.1);
}

ProfileOptions quick_options() {
  const RepeatOptions ranges{.min_repeats = 5, .min_time = std::chrono::milliseconds(5)};
  return {.update = update,
          .nodes = quick(),
          .ranges = ranges,
          .held = {.min_repeats = 2, .max_repeats = 2},
          .links = {.sizes = {64, 1 << 16, 1 << 20}, .max_round_trips = 10}};
}

/// Forward and backward: the times of all nodes over that of the whole graph.
std::pair<double, double> nodes_over_whole(const Recorded& recorded) {
  const auto profile = measure_profile(recorded.subject(), nullptr, quick_options());
  EXPECT_THAT(profile.ranges, SizeIs(2));
  EXPECT_EQ(profile.ranges[0].end, profile.ranges[1].begin);
  EXPECT_TRUE(graph::allowed_cuts(recorded.recording.graph)[profile.ranges[0].end]);
  RangeRuns runs(recorded.subject(), {}, program::Capture::kOn);
  const auto whole = measure_ranges(recorded.subject(), runs, quick_options().ranges);
  EXPECT_THAT(whole, SizeIs(1));
  double forward = 0, backward = 0;
  for (const profile::NodeTime& time : node_times(profile, recorded.recording.graph)) {
    forward += time.forward_us;
    backward += time.backward_us();
  }
  return {forward / whole[0].forward_us, backward / whole[0].backward_us};
}

// A slow second while the ranges were measured once was in every forecast of the profile, and the
// quickest of several was quicker than most steps.
TEST(ProfileTest, TheVisitInTheMiddleCounts) {
  const std::vector<profile::RangeTime> slow = {{0, 3, 10, 25}, {3, 5, 8, 20}};
  const std::vector<profile::RangeTime> quiet = {{0, 3, 11, 20}, {3, 5, 8, 19}};
  const std::vector<profile::RangeTime> usual = {{0, 3, 11, 21}, {3, 5, 8, 20}};
  EXPECT_EQ(middle_visit({slow, quiet, slow, usual, quiet}), usual);
  EXPECT_EQ(middle_visit({slow}), slow);
}

TEST(ProfileTest, ScaledNodesAddUpToTheWholeGraph) {
  constexpr int kAttempts = 10;  // other load on the machine comes and goes
  const auto is_near = [](double ratio) { return ratio > 0.5 && ratio < 2; };
  for (const char* name : {"mlp", "resnet", "transformer", "tagger"}) {
    const Recorded recorded(name);
    std::pair<double, double> ratios;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      ratios = nodes_over_whole(recorded);
      if (is_near(ratios.first) && is_near(ratios.second)) break;
    }
    EXPECT_TRUE(is_near(ratios.first)) << name << " " << ratios.first;
    EXPECT_TRUE(is_near(ratios.second)) << name << " " << ratios.second;
  }
}

TEST(ProfileTest, IsCheckedAndSurvivesItsFileForm) {
  const Recorded recorded("mlp");
  const graph::Graph& graph = recorded.recording.graph;
  const auto profile = measure_profile(recorded.subject(), nullptr, quick_options());
  profile::check(profile, graph);
  EXPECT_EQ(profile::profile_from_json(to_json(profile)), profile);
  EXPECT_EQ(profile.graph_sha256, graph::graph_sha256(graph));
  EXPECT_EQ(profile.microbatch, 8);
  EXPECT_EQ(profile.num_busy_ranks, 1);
  EXPECT_NE(profile.hardware.processor, "");
  EXPECT_NE(profile.hardware.instruction_set, "");
  EXPECT_GT(profile.hardware.num_cores, 0);
  ASSERT_TRUE(profile.held.has_value());
  EXPECT_EQ(profile.held->held_bytes, 8 * profile.held->one_bytes);  // the model is tiny
  EXPECT_NEAR(static_cast<double>(profile.held->one_bytes),
              static_cast<double>(bytes_left_by_forward(recorded)),
              0.05 * static_cast<double>(profile.held->one_bytes));
  EXPECT_GT(profile.step.optimizer_ns, 0);
  EXPECT_GT(profile.step.fold_ns, 0);
  EXPECT_GT(profile.step.copy_ns_per_byte, 0);
  EXPECT_THAT(profile.links, SizeIs(0));
}

TEST(ProfileTest, SaysHowMuchLongerStagesTakeThatAreNotCaptured) {
  const Recorded recorded("mlp");  // tiny: most of its time is torch's, between the operators
  ProfileOptions options = quick_options();
  const auto captured = measure_profile(recorded.subject(), nullptr, options);
  ASSERT_TRUE(captured.uncaptured.has_value());
  EXPECT_GT(captured.uncaptured->forward * captured.uncaptured->backward, 1.5);
  options.capture = program::Capture::kOff;
  EXPECT_FALSE(measure_profile(recorded.subject(), nullptr, options).uncaptured.has_value());
}

TEST(ProfileTest, IsTheSameOnAllRanks) {
  std::vector<profile::Profile> found(2);
  const std::vector<Recorded> recorded = [] {
    std::vector<Recorded> each;
    for (int rank = 0; rank < 2; ++rank) each.emplace_back("mlp");
    return each;
  }();
  run_ranks(2, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    at::set_num_threads(1);
    const Recorded& own = recorded[endpoint.rank()];
    found[endpoint.rank()] =
        measure_profile({own.recording, own.batch, ranks}, &endpoint, quick_options());
  });
  EXPECT_EQ(compact_text(to_json(found[0])), compact_text(to_json(found[1])));
  EXPECT_EQ(found[0].num_busy_ranks, 2);
  EXPECT_THAT(found[0].links, SizeIs(1));
  EXPECT_THAT(found[0].costs, SizeIs(10));
}

TEST(ProfileTest, DriftComparesEachRangeWithWhatItWas) {
  const Recorded recorded("mlp");
  auto profile = measure_profile(recorded.subject(), nullptr, quick_options());
  for (profile::RangeTime& range : profile.ranges) range.forward_us *= 100;
  const auto drifts = drift(profile, recorded.subject(), quick_options().ranges);
  ASSERT_THAT(drifts, SizeIs(2));
  for (const RangeDrift& drift : drifts) {
    EXPECT_GT(drift.forward, 0);
    EXPECT_LT(drift.forward, 0.5);
    EXPECT_GT(drift.backward, 0.1);
    EXPECT_LT(drift.backward, 10);
  }
}

TEST(ProfileTest, RefusesToGuessTheOptimizer) {
  const Recorded recorded("mlp");
  EXPECT_THROW(measure_profile(recorded.subject(), nullptr, {}), Error);
}

TEST(MiddleCutTest, IsTheAllowedOneNearestToHalf) {
  const Recorded recorded("mlp");
  const graph::Graph& graph = recorded.recording.graph;
  std::vector<double> times(graph.nodes.size(), 0);
  times[2] = times[7] = 1;
  const auto cut = middle_cut(graph, times);
  ASSERT_TRUE(cut.has_value());
  EXPECT_GT(*cut, 2);
  EXPECT_LE(*cut, 7);
  EXPECT_TRUE(graph::allowed_cuts(graph)[*cut]);
}

TEST(MiddleCutTest, AGraphWithoutAllowedCutsIsOneRange) {
  const Recorded recorded("mlp");
  graph::Graph graph = recorded.recording.graph;
  graph.nodes.resize(1);
  EXPECT_EQ(middle_cut(graph, std::vector<double>{1.0}), std::nullopt);
}

TEST(MeasureFiles, FindsWhatWritingAndReadingTake) {
  const RepeatOptions once{.min_repeats = 1, .max_repeats = 1};
  const profile::FileCosts costs = measure_files(testing::TempDir(), once, {});
  EXPECT_GT(costs.write_ns_per_byte, 0.01);
  EXPECT_GT(costs.read_ns_per_byte, 0.01);
  EXPECT_THROW(measure_files("/no/such/folder", once, {}), Error);
}

}  // namespace
}  // namespace trireme::measure
