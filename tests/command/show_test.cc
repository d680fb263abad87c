#include <gmock/gmock.h>

#include <array>

#include "tests/command/verb_runs.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/parameter_map_json.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/timeline_json.h"
#include "trireme/wire/collectives/tuner.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class Show : public CommandLine {
 protected:
  /// What `show` says of a file, in text; in JSON it must be the document's body.
  std::string show(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"show", path(name)};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = run(make_net, words);
    EXPECT_EQ(answer.code, 0) << name << ": " << answer.err;
    words.emplace_back("--json");
    Json document = Json::parse(read_file(path(name)));
    for (const char* field : {"format", "version", "sha256"}) document.erase(field);
    EXPECT_EQ(Json::parse(run(make_net, words).out), document) << name;
    return answer.out;
  }

  /// The files of all verbs, for two stages.
  void make_files() const {
    ASSERT_EQ(run(make_net, {"record", "--out", folder_.string()}).code, 0);
    ASSERT_EQ(run(make_net, {"profile", "--microbatch", "2", "--out", path("profile.json"),
                             "--topology", path("topology.json")})
                  .code,
              0);
    ASSERT_EQ(run(make_net, {"partition", "--graph", path("train.graph.json"), "--cut-at", "3",
                             "--batch", "8", "--microbatch", "2", "--out", path("plan.json")})
                  .code,
              0);
    const auto recorded = graph::load(path("train.graph.json"));
    const auto plan = layout::load(path("plan.json"));
    const auto planned = layout::planned_graph(recorded, plan);
    const auto map = layout::make_parameter_map(planned, plan, {.graph_sha256 = plan.graph_sha256});
    layout::save(map, path("map.json"));
    schedule::save(schedule::make_schedule("interleaved", 2, 4), path("schedule.json"));
    schedule::save(schedule::make_step_program(planned, plan, map, {}), path("program.json"));
  }
};

TEST_F(Show, KnowsEveryFormByItsFormat) {
  make_files();
  const std::vector<std::string> graph = {"--graph", path("train.graph.json")};
  EXPECT_THAT(show("train.graph.json"), HasSubstr("allowed cuts"));
  EXPECT_THAT(show("topology.json"), HasSubstr("host 0: "));
  EXPECT_THAT(show("profile.json"), HasSubstr("which: --graph FILE"));
  EXPECT_THAT(show("profile.json", graph), HasSubstr("most expensive nodes"));
  EXPECT_THAT(show("plan.json"), HasSubstr("--graph FILE"));
  EXPECT_THAT(show("plan.json", graph), HasSubstr("relu"));
  EXPECT_THAT(show("map.json"), HasSubstr("in.weight"));
  EXPECT_THAT(show("schedule.json"), HasSubstr("rank 1 | .. F0 B0"));
  EXPECT_THAT(show("program.json"), HasSubstr("\nrank 1\n  recv v"));
}

TEST_F(Show, WhatIsSplitOverShards) {
  ASSERT_EQ(run(make_net, {"record", "--out", folder_.string()}).code, 0);
  const auto shard = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"shard", "--graph", path("train.graph.json"), "--out",
                                      path("sharding.json")};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = run(make_net, words);
    EXPECT_EQ(answer.code, 0) << answer.err;
    return answer.out;
  };
  EXPECT_THAT(shard({}), HasSubstr("2 shards: nothing is split")) << "sums take longer";
  const std::string found = shard({"--shards", "4", "--gflops", "1e-9", "--link-us", "0"});
  EXPECT_THAT(found, HasSubstr("4 shards, "));
  EXPECT_THAT(found, HasSubstr("in.weight"));
  EXPECT_THAT(show("sharding.json"), HasSubstr("sums forward"));
  EXPECT_THAT(show("sharding.json", {"--graph", path("train.graph.json")}),
              HasSubstr("\nparameters: "));
  const Answer other =
      run(make_net, {"show", path("sharding.json"), "--graph", path("eval.graph.json")});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("find it for this graph"));
}

TEST_F(Show, WritesTheOrderOfAPlanAsATable) {
  ASSERT_EQ(run(make_net, {"record", "--out", folder_.string()}).code, 0);
  const auto answer_of = [&](const std::vector<std::string>& words, int code = 0) {
    const Answer answer = run(make_net, words);
    EXPECT_EQ(answer.code, code) << answer.err;
    return answer.out + answer.err;
  };
  const auto partition = [&](const std::string& option, const std::string& value, int code = 0) {
    return answer_of({"partition", "--graph", path("train.graph.json"), "--cut-at", "3", "--batch",
                      "6", "--microbatch", "2", option, value, "--out", path("plan.json")},
                     code);
  };
  partition("--schedule", "interleaved");
  answer_of({"show", path("plan.json"), "--order", path("own.csv")});
  EXPECT_EQ(read_file(path("own.csv")), "0F0,0F1,,0B0,0F2,0B1,,0B2\n,1F0,1B0,1F1,1B1,1F2,1B2,\n");
  EXPECT_THAT(answer_of({"show", path("own.csv"), "--order", path("own.json")}),
              HasSubstr("rank 1 | .. F0 B0"));
  EXPECT_EQ(schedule::load_schedule(path("own.json")),
            schedule::make_schedule("interleaved", 2, 3));
  partition("--schedule-file", path("own.csv"));
  EXPECT_EQ(layout::load(path("plan.json")).schedule.name, "custom");
  write_file_atomically(path("own.csv"), std::string_view("0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n"));
  EXPECT_THAT(partition("--schedule-file", path("own.csv"), 1),
              HasSubstr("own.csv, row 1, column 3: 0B1: expected 0B0\nrow 1 | 0F0 0F1 0B1\n"));
  EXPECT_THAT(answer_of({"show", path("train.graph.json"), "--order", path("own.csv")}, 2),
              HasSubstr("is a trireme.graph, and --order is for plans and schedules"));
}

TEST_F(Show, DrawsTimelines) {
  const std::array<schedule::Timeline, 2> timelines = {
      {{"predicted", 0, {{.rank = 0, .kind = "F", .name = "0F0", .duration_us = 10}}},
       {"measured", 3, {{.rank = 0, .kind = "B", .name = "0B0", .duration_us = 10}}}}};
  schedule::save(timelines, path("timeline.json"));
  const std::string text = show("timeline.json");
  EXPECT_THAT(text, HasSubstr("predicted step 0\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 | FFFF"));
  EXPECT_THAT(text, HasSubstr("measured step 3\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 | BBBB"));
}

TEST_F(Show, ListsTheTensorsOfACheckpoint) {
  checkpoint::Index index{.step = 7, .position = 56, .facts = {{"seed", "1"}}};
  index.contents.files = {{"rank-0.safetensors", 10, std::string(64, 'a')}};
  index.contents.tensors["parameters/w"] = {Dtype::kF32, {2, 3}, {{"rank-0.safetensors", 0, 2}}};
  checkpoint::save(index, path("index.json"));
  const std::string text = show("index.json");
  EXPECT_THAT(text, HasSubstr("checkpoint after 7 steps"));
  EXPECT_THAT(text, HasSubstr("parameters/w  f32 [2, 3]"));
}

TEST_F(Show, PrintsTheCostsOfTheNetwork) {
  collectives::save(collectives::kUsualCosts, path("costs.json"));
  EXPECT_EQ(show("costs.json"), collectives::to_text(collectives::kUsualCosts));
}

const char* const kRun = R"({"format": "trireme.run", "version": 1, "model": "t5", "seed": 0,
  "options": {}, "batch": {"global_batch": 64, "microbatch": 8, "lanes": 2}, "segments": [
    {"first_step": 0, "end_step": 50, "ranks": 2, "stages": 2, "replicas": 1,
     "schedule": "simple", "plan": "plan-2.json", "predicted_step_ms": 10.0,
     "median_step_ms": 11.5, "predicted_peak_bytes": [{"parameters": 1024}, {"parameters": 2048}],
     "peak_bytes": [1500, 1024], "resident_peak_bytes": [2000, 2000], "data_wait_fraction": 0.001,
     "compute_over_profile": 1.25, "ended": "done"},
    {"first_step": 50, "end_step": 100, "ranks": 1, "stages": 1, "replicas": 1,
     "schedule": "simple", "plan": "plan-1.json", "ended": "unknown"}]})";

TEST_F(Show, ListsTheSegmentsOfARun) {
  write_file_atomically(path("run.json"), std::string_view(kRun));
  EXPECT_EQ(show("run.json"), R"(run of t5, seed 0
  batch of 64 in 2 lanes, microbatches of 8

segments
  steps    ranks  stages x replicas  schedule  predicted ms  measured ms  predicted peak  measured peak  ended
  0..50        2  2 x 1              simple            10.0         11.5         2.0 KiB        1.5 KiB  done
  50..100      1  1 x 1              simple               -            -               -              -  unknown
)");
}

// `corrupt data`: only the names of documents were taken.
TEST_F(Show, TakesFoldersMetricsAndWeights) {
  const auto text_of = [&](const std::string& name, int code = 0) {
    const Answer answer = run(make_net, {"show", path(name)});
    EXPECT_EQ(answer.code, code) << name << ": " << answer.err;
    return answer.out + answer.err;
  };
  std::filesystem::create_directories(folder_ / "run/checkpoints");
  EXPECT_THAT(text_of("run", 2), HasSubstr("is a folder; expected a file"));
  ASSERT_EQ(run(make_net, {"train", "--run", path("run"), "--steps", "2", "--checkpoint-every", "1",
                           "--save", path("weights.safetensors")})
                .code,
            0);
  EXPECT_THAT(text_of("run"), HasSubstr("segments"));
  for (const std::string name : {"run/checkpoints", "run/checkpoints/latest"}) {
    EXPECT_THAT(text_of(name), HasSubstr("checkpoint after 2 steps"));
  }
  EXPECT_THAT(text_of("run/checkpoints/step-1"), HasSubstr("checkpoint after 1 steps"));
  EXPECT_THAT(text_of("weights.safetensors"), HasSubstr("in.weight   f32   [8, 4]"));
  EXPECT_THAT(text_of("run/metrics.jsonl"),
              testing::AllOf(HasSubstr("2 steps"), HasSubstr("evaluation loss")));
  const Answer json = run(make_net, {"--json", "show", path("run/metrics.jsonl")});
  EXPECT_EQ(Json::parse(json.out).back()["evaluation"].is_object(), true);
  write_file_atomically(path("odd.jsonl"), std::string_view("{\"step\": 1}\n{}\n"));
  EXPECT_THAT(text_of("odd.jsonl", 1), HasSubstr("line 2"));
  const Answer exported = run(make_net, {"export", path("run"), "--out", path("exported")});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(read_file(path("exported")), read_file(path("weights.safetensors")));
  const std::vector<std::string> average = {"export", path("run"), "--out", path("average"),
                                            "--average"};
  EXPECT_THAT(run(make_net, average).err, HasSubstr("train with --average-decay"));
}

TEST_F(Show, AveragesAreExportedInThePlaceOfWeights) {
  ASSERT_EQ(run(make_net, {"train", "--run", path("run"), "--steps", "2", "--average-decay", "0.5",
                           "--save", path("weights.safetensors")})
                .code,
            0);
  ASSERT_EQ(run(make_net, {"export", path("run"), "--out", path("average"), "--average"}).code, 0);
  EXPECT_EQ(read_file(path("average")).size(), read_file(path("weights.safetensors")).size());
  EXPECT_NE(read_file(path("average")), read_file(path("weights.safetensors")));
}

TEST_F(Show, NamesWhatItCannotShow) {
  const auto says = [&](std::string_view content, const std::string& what, int code) {
    write_file_atomically(path("wrong.json"), content);
    const Answer answer = run(make_net, {"show", path("wrong.json")});
    EXPECT_EQ(answer.code, code) << answer.err;
    EXPECT_THAT(answer.err, HasSubstr("wrong.json"));
    EXPECT_THAT(answer.err, HasSubstr(what));
  };
  says("noise", "JSON", 1);
  says("{}", "has no field \"format\"", 2);
  says(R"({"format": "trireme.oar"})", "it shows trireme.graph, trireme.profile", 2);
  for (const char* format : {"graph", "profile", "topology", "plan", "parameter_map", "schedule",
                             "step_program", "timeline", "run", "network_costs", "checkpoint"}) {
    const bool needs_hash = std::string_view(format) == "checkpoint";
    says(R"({"format": "trireme.)" + std::string(format) + R"(", "version": 1})",
         needs_hash ? "no field sha256" : "missing", 1);
    says(R"({"format": "trireme.)" + std::string(format) + R"(", "version": 2})", "version 2", 2);
  }
  says(R"({"format": "trireme.run", "version": 1, "model": 3, "sha256": "0"})", "sha256", 1);
  std::string text = kRun;
  says(text.replace(text.find("unknown"), 7, "done"), "'done' where there are figures", 1);
}

TEST_F(Show, RefusesAGraphThatAddsNothing) {
  write_file_atomically(path("run.json"), std::string_view(kRun));
  const Answer answer = run(make_net, {"show", path("run.json"), "--graph", path("run.json")});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("--graph adds nothing"));
}

}  // namespace
}  // namespace trireme
