#include "trireme/plan/schedule/step_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/graphs/sample_graphs.h"
#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;
using testing::make_case;
using testing::picture;
using testing::StepCase;

/// Channels as `kind stage>stage rank>rank`, one a line.
std::string channels(const StepProgram& program) {
  constexpr std::array kKinds = {"value", "gradient", "tie gradient", "tie value"};
  std::string text;
  for (const Channel& c : program.channels) {
    text += std::string(kKinds[static_cast<int>(c.kind)]) + " " + std::to_string(c.from_stage) +
            ">" + std::to_string(c.to_stage) + " " + std::to_string(c.from_rank) + ">" +
            std::to_string(c.to_rank) + "\n";
  }
  return text;
}

TEST(StepProgram, OneRankJustComputes) {
  const StepCase step = make_case(graph::testing::make_mlp(), {});
  EXPECT_EQ(picture(step.program, 0),
            "compute 0F0 | compute 0F1 | compute 0B0 | compute 0B1 | "
            "exchange | tie sum | commit | update");
  EXPECT_TRUE(step.program.channels.empty());
}

TEST(StepProgram, ReplicasTellEachOtherTheWeightsOfLossesFirst) {
  const StepCase step = make_case(testing::make_losses(), {.replicas = 2});
  EXPECT_EQ(step.program.ranks[0].front().kind, OperationKind::kWeigh);
  EXPECT_THAT(picture(step.program, 1), ::testing::StartsWith("weigh | compute 0F0"));
  EXPECT_THAT(picture(make_case(testing::make_losses(), {}).program, 0),
              ::testing::StartsWith("compute 0F0"));
}

// The weighted loss is made in stage 0; stage 1 has a mean and a metric.
TEST(StepProgram, StagesWithoutAWeightedLossDoNotWeigh) {
  const StepCase step = make_case(testing::make_losses(), {.cuts = {3}, .replicas = 2});
  EXPECT_THAT(picture(step.program, 1), ::testing::StartsWith("weigh | compute 0F0"));
  EXPECT_THAT(picture(step.program, 2), ::testing::StartsWith("recv v"));
}

TEST(StepProgram, TwoStagesSendValuesAndGradients) {
  const StepCase step = make_case(graph::testing::make_mlp(), {.cuts = {2}});
  EXPECT_EQ(picture(step.program, 0),
            "compute 0F0 | send v6 m0 0>1 | compute 0F1 | send v6 m1 0>1 | "
            "recv g6 m0 1>0 | compute 0B0 | recv g6 m1 1>0 | compute 0B1 | "
            "exchange | tie sum | commit | update");
  EXPECT_EQ(picture(step.program, 1),
            "recv v6 m0 0>1 | compute 1F0 | recv v6 m1 0>1 | compute 1F1 | "
            "compute 1B0 | send g6 m0 1>0 | compute 1B1 | send g6 m1 1>0 | "
            "exchange | tie sum | commit | update");
  EXPECT_EQ(channels(step.program), "value 0>1 0>1\ngradient 1>0 1>0\n");
}

// The value v3 of stage 0 goes directly to stages 1 and 2; its gradient comes back 2 > 1 > 0. The
// parameter t (index 0, sites 0 and 1) is kept by stage 0 and mirrored by stage 2.
TEST(StepProgram, ThreeStagesWithASkipAndATie) {
  const StepCase step = make_case(testing::make_skips_and_ties(),
                                  {.cuts = {1, 3}, .schedule = "interleaved", .has_norm = true});
  EXPECT_EQ(picture(step.program, 0),
            "compute 0F0 | send v3 m0 0>1 | send v3 m0 0>2 | "
            "compute 0F1 | send v3 m1 0>1 | send v3 m1 0>2 | "
            "recv g3 m0 1>0 | compute 0B0 | recv g3 m1 1>0 | compute 0B1 | "
            "exchange | recv site 1 2>0 | tie sum | norm | commit | update | send parameter 0 0>2");
  EXPECT_EQ(picture(step.program, 1),
            "recv v3 m0 0>1 | compute 1F0 | send v5 m0 1>2 | "
            "recv v3 m1 0>1 | compute 1F1 | send v5 m1 1>2 | "
            "recv g3 m0 2>1 | recv g5 m0 2>1 | compute 1B0 | send g3 m0 1>0 | "
            "recv g3 m1 2>1 | recv g5 m1 2>1 | compute 1B1 | send g3 m1 1>0 | "
            "exchange | tie sum | norm | commit | update");
  EXPECT_EQ(picture(step.program, 2),
            "recv v3 m0 0>2 | recv v5 m0 1>2 | compute 2F0 | "
            "compute 2B0 | send g3 m0 2>1 | send g5 m0 2>1 | "
            "recv v3 m1 0>2 | recv v5 m1 1>2 | compute 2F1 | "
            "compute 2B1 | send g3 m1 2>1 | send g5 m1 2>1 | "
            "exchange | send site 1 2>0 | tie sum | norm | commit | update | recv parameter 0 0>2");
}

TEST(StepProgram, TheOwnerOfATieMayBeTheLaterStage) {
  const StepCase step = make_case(testing::make_skips_and_ties(),
                                  {.cuts = {3}, .microbatches = 1, .tie_owners = {{"t", 1}}});
  EXPECT_THAT(picture(step.program, 0), HasSubstr("exchange | send site 0 0>1 | tie sum"));
  EXPECT_THAT(picture(step.program, 0), HasSubstr("update | recv parameter 0 1>0"));
  EXPECT_THAT(picture(step.program, 1), HasSubstr("exchange | recv site 0 0>1 | tie sum"));
  EXPECT_THAT(picture(step.program, 1), HasSubstr("update | send parameter 0 1>0"));
}

TEST(StepProgram, ReplicasReduceEveryBucketInsideTheLastBackward) {
  const StepCase step =
      make_case(graph::testing::make_mlp(), {.cuts = {2}, .replicas = 2, .microbatches = 1});
  const std::string last =
      "recv v6 m0 0>1 | compute 1F0 | reduce bucket 2 | reduce bucket 3 | compute 1B0 | "
      "send g6 m0 1>0 | exchange | join bucket 2 | join bucket 3 | tie sum | commit | update";
  EXPECT_EQ(picture(step.program, 0),
            "compute 0F0 | send v6 m0 0>1 | recv g6 m0 1>0 | reduce bucket 0 | reduce bucket 1 | "
            "compute 0B0 | exchange | join bucket 0 | join bucket 1 | tie sum | commit | update");
  EXPECT_EQ(picture(step.program, 2), last);
  EXPECT_EQ(picture(step.program, 3), last);
  // Mesh: stage 0 on ranks 0 and 1, stage 1 on 2 and 3.
  EXPECT_EQ(channels(step.program),
            "value 0>1 0>2\nvalue 0>1 1>3\ngradient 1>0 2>0\ngradient 1>0 3>1\n");
  EXPECT_EQ(step.program.groups, (std::vector<RankGroup>{{GroupKind::kWorld, 0, {0, 1, 2, 3}},
                                                         {GroupKind::kData, 0, {0, 1}},
                                                         {GroupKind::kData, 1, {2, 3}},
                                                         {GroupKind::kPipeline, 0, {0, 2}},
                                                         {GroupKind::kPipeline, 1, {1, 3}}}));
}

// The tie `t` is kept by stage 0, mirrored by stage 1; the values that stage 1 mirrors are whole before they are sent.
TEST(StepProgram, ReplicasThatShareStateGatherWhatTheyOwn) {
  const StepCase step = make_case(
      testing::make_skips_and_ties(),
      {.cuts = {3}, .replicas = 2, .microbatches = 1, .has_norm = true, .shards_state = true});
  EXPECT_THAT(picture(step.program, 0),
              HasSubstr("norm | commit | update | gather bucket 0 | gather bucket 1 | "
                        "send parameter 0 0>1"));
  EXPECT_THAT(picture(step.program, 2), ::testing::EndsWith("update | recv parameter 0 0>1"));
  const StepCase alone =
      make_case(testing::make_skips_and_ties(), {.cuts = {3}, .shards_state = true});
  EXPECT_THAT(picture(alone.program, 0), ::testing::Not(HasSubstr("gather")));
}

// Three stages of one rank, which has two replicas; the one in the middle has no parameters. The sum of stage 2 is joined
// after the action that follows its own.
TEST(StepProgram, ShardedValuesAreWholeWhereTheirStagesRun) {
  const StepCase step = make_case(graph::testing::make_mlp(), {.cuts = {1, 2},
                                                               .replicas = 2,
                                                               .stages_per_rank = 3,
                                                               .microbatches = 1,
                                                               .shards_parameters = true});
  EXPECT_EQ(picture(step.program, 0),
            "unshard bucket 0 | unshard bucket 1 | await bucket 0 | await bucket 1 | compute 0F0 | "
            "send v5 m0 0>1 | "
            "reshard bucket 0 | reshard bucket 1 | unshard bucket 2 | unshard bucket 3 | "
            "recv v5 m0 0>1 | compute 1F0 | send v6 m0 1>2 | "
            "await bucket 2 | await bucket 3 | recv v6 m0 1>2 | compute 2F0 | "
            "reduce bucket 2 | reduce bucket 3 | compute 2B0 | send g6 m0 2>1 | "
            "reshard bucket 2 | reshard bucket 3 | unshard bucket 0 | unshard bucket 1 | "
            "recv g6 m0 2>1 | compute 1B0 | send g5 m0 1>0 | join bucket 2 | join bucket 3 | "
            "await bucket 0 | await bucket 1 | recv g5 m0 1>0 | reduce bucket 0 | "
            "reduce bucket 1 | compute 0B0 | reshard bucket 0 | reshard bucket 1 | "
            "exchange | join bucket 0 | join bucket 1 | tie sum | commit | update");
  EXPECT_EQ(picture(step.program, 0), picture(step.program, 1));
}

// The tie `t` of stages 0 and 2 stays whole: summed, gathered and sent as without shards. Bucket 1 is of `s` alone.
TEST(StepProgram, ParametersOfSeveralStagesStayWhole) {
  const StepCase step =
      make_case(testing::make_skips_and_ties(),
                {.cuts = {1, 3}, .replicas = 2, .microbatches = 1, .shards_parameters = true});
  EXPECT_EQ(
      picture(step.program, 0),
      "compute 0F0 | send v3 m0 0>1 | send v3 m0 0>2 | recv g3 m0 1>0 | reduce bucket 0 | "
      "compute 0B0 | exchange | join bucket 0 | recv site 1 2>0 | tie sum | commit | update | "
      "gather bucket 0 | send parameter 0 0>2");
  EXPECT_EQ(picture(step.program, 2),
            "unshard bucket 1 | await bucket 1 | recv v3 m0 0>1 | compute 1F0 | send v5 m0 1>2 | "
            "recv g3 m0 2>1 | recv g5 m0 2>1 | reduce bucket 1 | compute 1B0 | send g3 m0 1>0 | "
            "reshard bucket 1 | exchange | join bucket 1 | tie sum | commit | update");
}

// Stage 0 of four microbatches under `simple`: what lies two actions or fewer before its backward stays.
TEST(StepProgram, WhatAStageKeepsIsInAFileMeanwhile) {
  const StepCase step =
      make_case(graph::testing::make_mlp(), {.cuts = {2}, .microbatches = 3, .offloads = {0}});
  EXPECT_THAT(picture(step.program, 0),
              HasSubstr("compute 0F0 | send v6 m0 0>1 | offload 0F0 | "
                        "prefetch 0B0 | compute 0F1 | send v6 m1 0>1 | offload 0F1 | "
                        "prefetch 0B1 | compute 0F2 | send v6 m2 0>1 | offload 0F2 | "
                        "prefetch 0B2 | recv g6 m0 1>0 | fetch 0B0 | compute 0B0 | "
                        "recv g6 m1 1>0 | fetch 0B1 | compute 0B1 | "
                        "recv g6 m2 1>0 | fetch 0B2 | compute 0B2 | exchange"));
  EXPECT_THAT(picture(step.program, 1), ::testing::Not(HasSubstr("offload")));
  const StepCase near =
      make_case(graph::testing::make_mlp(), {.cuts = {2}, .microbatches = 2, .offloads = {0, 1}});
  EXPECT_THAT(picture(near.program, 0), ::testing::Not(HasSubstr("offload")));
}

/// The complaint about the MLP in two stages after `change`.
std::string planning_error(const std::function<void(StepCase&)>& change) {
  StepCase step = make_case(graph::testing::make_mlp(), {.cuts = {2}});
  change(step);
  try {
    make_step_program(step.graph, step.plan, step.map, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(StepProgram, RefusesPlansThatItCannotServe) {
  EXPECT_THAT(planning_error([](StepCase& s) { s.plan.schedule.name = "gpipe"; }),
              HasSubstr("no schedule 'gpipe'; choose one of simple, interleaved"));
  EXPECT_THAT(planning_error([](StepCase& s) {
                s.plan.roles[0].mesh.pipeline = 1;
                s.plan.roles[0].placement = {0};
              }),
              HasSubstr("stage 1 is at position 1 of a pipeline of 1"));
  EXPECT_THAT(planning_error([](StepCase& s) {
                s.plan.roles[0].mesh.shard = 2;
                s.plan.roles[0].placement = {0, 1, 2, 3};
              }),
              HasSubstr("2 shards; only 1 is possible so far"));
  EXPECT_THAT(planning_error([](StepCase& s) { s.plan.roles[0].placement = {0, 1 << 30}; }),
              HasSubstr("number them from 0 without gaps"));
}

/// The complaint about `lanes` lanes on `replicas` replicas.
std::string lanes_on_replicas(int lanes, int replicas) {
  return planning_error([&](StepCase& s) {
    s.plan.batch = {lanes, 1, lanes};
    s.plan.roles[0].mesh.data = replicas;
    s.plan.roles[0].placement.clear();
    for (int r = 0; r < 2 * replicas; ++r) s.plan.roles[0].placement.push_back(r);
  });
}

TEST(StepProgram, LanesOfEachReplicaAreASubtree) {
  for (const auto& [lanes, replicas] :
       {std::pair{1, 1}, {3, 1}, {6, 1}, {4, 2}, {3, 3}, {6, 3}, {12, 3}, {8, 8}}) {
    EXPECT_EQ(lanes_on_replicas(lanes, replicas), "") << lanes << " on " << replicas;
  }
  EXPECT_THAT(lanes_on_replicas(3, 2), HasSubstr("2 data replicas do not divide the 3 lanes"));
  EXPECT_THAT(lanes_on_replicas(6, 2), HasSubstr("are 3 each, which is no power of two"));
  EXPECT_THAT(lanes_on_replicas(12, 2), HasSubstr("choose lanes = replicas x 1, 2, 4, ..."));
  EXPECT_THAT(planning_error([](StepCase& s) {
                s.plan.batch = {6, 1, 6};
                s.plan.roles[0] = {"train", {2, 6, 1}, {0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 7, 7}};
              }),
              HasSubstr("6 lanes on 2 ranks at position 1 are 3 each, which is no power of two"));
  EXPECT_EQ(planning_error([](StepCase& s) {
              s.plan.batch = {6, 1, 6};
              s.plan.roles[0] = {"train", {2, 6, 1}, {0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6}};
            }),
            "");
  EXPECT_THAT(planning_error([](StepCase& s) {
                s.plan.batch = {2, 1, 2};
                s.plan.roles[0] = {"train", {2, 2, 1}, {0, 1, 2, 2}};
                s.plan.sharded_state = true;
              }),
              HasSubstr("shard none, or place a rank for each replica"));
}

TEST(StepProgram, ARankRunsItsReplicasSideBySide) {
  const StepCase step =
      make_case(graph::testing::make_mlp(),
                {.cuts = {2}, .replicas = 2, .schedule = "interleaved", .placement = {0, 1, 2, 2}});
  ASSERT_EQ(step.program.ranks.size(), 3U);
  EXPECT_EQ(channels(step.program),
            "value 0>1 0>2\nvalue 0>1 1>2\ngradient 1>0 2>0\ngradient 1>0 2>1\n");
  EXPECT_EQ(picture(step.program, 0),
            "compute 0F0 | send v6 m0 0>1 | compute 0F1 | send v6 m1 0>1 | recv g6 m0 1>0 | "
            "compute 0B0 | recv g6 m1 1>0 | reduce bucket 0 | reduce bucket 1 | compute 0B1 | "
            "exchange | join bucket 0 | join bucket 1 | tie sum | commit | update");
  EXPECT_EQ(picture(step.program, 2),
            "recv v6 m0 0>1 | compute 1F0 | recv v6 m2 0>1 | compute 1F2 | "
            "compute 1B0 | send g6 m0 1>0 | compute 1B2 | send g6 m2 1>0 | "
            "recv v6 m1 0>1 | compute 1F1 | recv v6 m3 0>1 | compute 1F3 | "
            "compute 1B1 | send g6 m1 1>0 | compute 1B3 | send g6 m3 1>0 | "
            "exchange | tie sum | commit | update");
  EXPECT_EQ(step.program.groups, (std::vector<RankGroup>{{GroupKind::kWorld, 0, {0, 1, 2}},
                                                         {GroupKind::kData, 0, {0, 1}},
                                                         {GroupKind::kData, 1, {2}},
                                                         {GroupKind::kPipeline, 0, {0, 1, 2}}}));
}

// Four replicas: four ranks, then two, then one. What is shared comes to each rank once.
TEST(StepProgram, TiesGoToEachRankOnce) {
  const StepCase step = make_case(testing::make_skips_and_ties(),
                                  {.cuts = {1, 3},
                                   .replicas = 4,
                                   .microbatches = 1,
                                   .placement = {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6}});
  const auto ties = [&](int rank) {
    std::string text;
    for (const Operation& operation : step.program.ranks[rank]) {
      const std::string one = to_text(step.program, operation);
      if (one.find("site") != std::string::npos || one.find("parameter") != std::string::npos)
        text += (text.empty() ? "" : " | ") + one;
    }
    return text;
  };
  EXPECT_EQ(ties(0), "recv site 1 2>0 | send parameter 0 0>2");
  EXPECT_EQ(ties(1), "recv site 1 2>0");
  EXPECT_EQ(ties(5), "");
  EXPECT_EQ(ties(6),
            "send site 1 2>0 | send site 1 2>0 #1 | send site 1 2>0 #2 | send site 1 2>0 #3 | "
            "recv parameter 0 0>2");
  EXPECT_EQ(step.facts.num_replicas(), 4);
  EXPECT_EQ(num_pipelines(step.facts), 1);
}

TEST(StepProgram, RanksOfOtherRolesDoNothing) {
  StepCase step = make_case(graph::testing::make_mlp(), {.cuts = {2}});
  step.plan.roles[0].placement = {2, 0};
  step.plan.roles.push_back({"reader", {1, 1, 1}, {1}});
  const StepProgram program = make_step_program(step.graph, step.plan, step.map, {});
  ASSERT_EQ(program.ranks.size(), 3U);
  EXPECT_TRUE(program.ranks[1].empty());
  EXPECT_THAT(picture(program, 2), HasSubstr("compute 0F0"));
  EXPECT_THAT(picture(program, 0), HasSubstr("compute 1F0"));
  EXPECT_EQ(channels(program), "value 0>1 2>0\ngradient 1>0 0>2\n");
}

}  // namespace
}  // namespace trireme::schedule
