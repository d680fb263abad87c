#include "trireme/plan/analytic/layout_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "trireme/plan/analytic/layout_search.h"

namespace trireme::analytic {
namespace {

TrainLayout layout_of(std::int64_t pipeline, std::int64_t parts, std::int64_t batch) {
  TrainLayout layout;
  layout.pipeline = pipeline;
  layout.virtual_stages = parts;
  layout.global_batch = batch;
  layout.seq_len = 512;
  return layout;
}

TEST(LayoutTimeline, EveryRankRunsItsActionsOneAfterTheOther) {
  const ModelShape& shape = model("t5-3b");
  const Machine& p4d = machine("p4d");
  const AchievedParts& achieved = achieved_of(usual_achieved(), p4d.accelerator.name);
  const Json json = pipeline_timeline(shape, p4d, layout_of(4, 2, 8), achieved);
  ASSERT_EQ(json["actions"].size(), 4U * 2 * 8 * 2) << "ranks, parts, microbatches, directions";
  EXPECT_EQ(json["num_actions"], json["actions"].size());
  std::map<int, double> free_at;
  double end = 0;
  for (const Json& action : json["actions"]) {
    double& free = free_at[action[0].get<int>()];
    EXPECT_GE(action[1].get<double>(), free);
    free = action[2].get<double>();
    EXPECT_GT(free, action[1].get<double>());
    end = std::max(end, free);
  }
  EXPECT_EQ(free_at.size(), 4U);
  EXPECT_LE(end, json["end_s"].get<double>());
}

TEST(LayoutTimeline, OfTooManyActionsSaysHowManyThereAre) {
  const Machine& p4d = machine("p4d");
  const AchievedParts& achieved = achieved_of(usual_achieved(), p4d.accelerator.name);
  const Json json = pipeline_timeline(model("t5-3b"), p4d, layout_of(4, 1, 4096), achieved);
  EXPECT_TRUE(json["actions"].is_null());
  EXPECT_EQ(json["num_actions"], 2 * 4 * 4096);
}

TEST(LayoutSearch, TheFrontIsWhatNoneBeats) {
  const LayoutSearch search{.num_hosts = 4, .global_batch = 128, .microbatch = 2, .most = 100'000};
  const LayoutsFound found =
      search_layouts(model("t5-3b"), machine("p4d"), usual_achieved(), search);
  ASSERT_GT(found.front.size(), 1U);
  for (const FoundLayout& one : found.best) {
    EXPECT_EQ(one.layout.microbatch, 2);
    const auto memory = [](const FoundLayout& layout) { return layout.step.memory.total(); };
    const bool is_on_front = std::ranges::any_of(found.front, [&](const FoundLayout& other) {
      return other.step.step_s == one.step.step_s && memory(other) == memory(one);
    });
    const bool is_beaten = std::ranges::any_of(found.best, [&](const FoundLayout& other) {
      return other.step.step_s <= one.step.step_s && memory(other) <= memory(one) &&
             (other.step.step_s < one.step.step_s || memory(other) < memory(one));
    });
    EXPECT_NE(is_on_front, is_beaten) << to_text(one.layout);
  }
}

}  // namespace
}  // namespace trireme::analytic
