// The command line with ranks: processes over tcp.

#include <algorithm>

#include "tests/command/rank_processes.h"
#include "trireme/base/json.h"
#include "trireme/base/safetensors.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/timeline_json.h"

namespace trireme::command::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Words kTinyTraining = {"--model",      "gated", "train",   "--batch", "8",
                             "--microbatch", "2",     "--steps", "2"};

struct Layout {
  const char* model;
  const char* stages;
  const char* replicas;
  const char* lanes;
  const char* schedule;
  const char* stages_per_rank = "1";
  const char* gradients = "f32";
  const char* threads = "1";
};

class RankLayouts : public RankTest, public testing::WithParamInterface<Layout> {};

TEST_P(RankLayouts, LearnWhatOneProcessLearns) {
  const Layout& layout = GetParam();
  const Words words = {"--model",
                       layout.model,
                       "--seed",
                       "3",
                       "train",
                       "--batch",
                       "24",
                       "--microbatch",
                       "2",
                       "--lanes",
                       layout.lanes,
                       "--stages",
                       layout.stages,
                       "--replicas",
                       layout.replicas,
                       "--schedule",
                       layout.schedule,
                       "--steps",
                       "3",
                       "--clip-norm",
                       "0.5",
                       "--stages-per-rank",
                       layout.stages_per_rank,
                       "--gradients",
                       layout.gradients,
                       "--threads",
                       layout.threads};
  const auto serial = run(with(words, {"--serial", "--save", path("serial")}));
  const auto ranks = run(with(words, {"--save", path("ranks")}));
  ASSERT_FALSE(text_of(path("serial")).empty());
  EXPECT_TRUE(text_of(path("serial")) == text_of(path("ranks")));
  EXPECT_THAT(evaluation_in(serial->out()), HasSubstr("loss"));
  EXPECT_EQ(evaluation_in(serial->out()), evaluation_in(ranks->out()));
}

INSTANTIATE_TEST_SUITE_P(
    Covering, RankLayouts,
    testing::Values(Layout{"mlp", "4", "1", "1", "simple"},
                    Layout{"resnet", "2", "2", "4", "interleaved"},
                    Layout{"transformer", "3", "1", "2", "interleaved"},
                    Layout{"transformer", "2", "2", "4", "simple", "1", "bf16"},
                    Layout{"tagger", "1", "3", "6", "simple", "1", "bf16"},
                    Layout{"two_losses", "2", "2", "2", "interleaved"},
                    Layout{"transformer", "2", "1", "2", "zero_bubble", "1", "f32", "2"},
                    Layout{"resnet", "4", "2", "4", "v_half", "2"}));

TEST_F(RankTest, FilesOfATrainingCanBeRead) {
  run(with(kTinyTraining, {"--stages", "3", "--metrics", path("metrics"), "--timeline",
                           path("timeline"), "--save", path("weights")}));
  const auto metrics = lines_of(text_of(path("metrics")));
  ASSERT_EQ(metrics.size(), 3U);  // two steps and the evaluation
  EXPECT_TRUE(Json::parse(metrics[2]).contains("evaluation"));
  for (std::size_t step = 0; step < 2; ++step) {
    EXPECT_EQ(Json::parse(metrics[step])["step"], step);
    EXPECT_GT(Json::parse(metrics[step])["loss"].get<double>(), 0);
  }
  const auto timelines = schedule::load_timelines(path("timeline"));
  ASSERT_EQ(timelines.size(), 2U);
  EXPECT_EQ(timelines[0].name, "measured");
  EXPECT_FALSE(timelines[0].events.empty());
  EXPECT_EQ(timelines[1].name, "evaluation");
  const auto& events = timelines[1].events;
  const auto is_of = [&](const char* kind) {
    return std::ranges::count_if(events, [kind](const auto& event) { return event.kind == kind; });
  };
  EXPECT_GT(is_of("F"), 0);
  EXPECT_EQ(is_of("B"), 0);
  EXPECT_EQ(is_of("exchange"), 3);  // of each rank
  const std::string weights = text_of(path("weights"));
  EXPECT_EQ(safetensors::parse(std::as_bytes(std::span(weights)), "weights").tensors.size(), 6U);
}

TEST_F(RankTest, JsonIsALineEach) {
  const auto process = run(with(kTinyTraining, {"--json", "--stages", "2", "--log-every", "1"}));
  const auto lines = lines_of(process->out());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(Json::parse(lines[1])["step"], 1);
  EXPECT_GT(Json::parse(lines[2])["evaluation"]["loss"].get<double>(), 0);
}

TEST_F(RankTest, GoFromAModelToTrainedWeights) {
  const Words model = {"--model", "mlp"};
  run(with(model, {"record", "--out", folder}));
  run(with(model, {"profile", "--ranks", "2", "--microbatch", "2", "--out", path("profile.json"),
                   "--topology", path("topology.json")}));
  run(with(model, {"partition", "--graph", path("train.graph.json"), "--profile",
                   path("profile.json"), "--topology", path("topology.json"), "--batch", "8",
                   "--stages", "2", "--out", path("plan.json")}));
  const Words plan = {"--plan", path("plan.json")};
  const auto simulation =
      run(with(with({"simulate"}, plan),
               {"--graph", path("train.graph.json"), "--profile", path("profile.json"),
                "--topology", path("topology.json"), "--timeline", path("predicted")}));
  EXPECT_EQ(schedule::load_timelines(path("predicted")).size(), 1U);
  const auto training = run(with(with(model, {"train", "--steps", "2"}),
                                 with(plan, {"--profile", path("profile.json"), "--topology",
                                             path("topology.json"), "--timeline", path("both")})));
  EXPECT_THAT(training->out(), HasSubstr("(predicted"));
  const std::string before = "; forwards and backwards took ";
  const std::size_t at = training->out().find(before);
  ASSERT_NE(at, std::string::npos) << training->out();
  const double over_profile = std::stod(training->out().substr(at + before.size()));
  EXPECT_GT(over_profile, 0.02);  // the same unit, all stages and microbatches; a busy machine may
  EXPECT_LT(over_profile, 50);    // be ten times slower in one of the two
  const auto both = schedule::load_timelines(path("both"));
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].name, "predicted");
  EXPECT_EQ(both[1].name, "measured");
  EXPECT_EQ(both[2].name, "evaluation");
}

TEST_F(RankTest, SayWhatWouldMakeStepsFaster) {
  const Words model = {"--model", "mlp"};
  run(with(model, {"record", "--out", folder}));
  run(with(model, {"profile", "--ranks", "2", "--microbatch", "2", "--out", path("profile.json"),
                   "--topology", path("topology.json")}));
  const Words costs = {"--graph",    path("train.graph.json"), "--profile", path("profile.json"),
                       "--topology", path("topology.json")};
  const auto front =
      run(with({"--json", "partition", "--batch", "8", "--front", path("front")}, costs));
  const Json plans = Json::parse(front->out())["plans"];
  ASSERT_GT(plans.size(), 1U);
  EXPECT_LT(plans.front()["predicted_step_ms"], plans.back()["predicted_step_ms"]);
  EXPECT_GT(plans.front()["peak_bytes"], plans.back()["peak_bytes"]);
  const std::string plan = plans.front()["file"];
  const auto explained = run(with({"explain", "--plan", plan}, costs));
  EXPECT_THAT(explained->out(), HasSubstr("updates in no time"));
  run(with(model, {"train", "--run", path("run"), "--ranks", "2", "--batch", "8", "--microbatch",
                   "2", "--steps", "2", "--optimizer", "sgd", "--momentum", "0"}));
  const auto run_explained = run({"--json", "explain", path("run")});
  const Json now = Json::parse(run_explained->out());
  EXPECT_GT(now["now"]["step_ms"].get<double>(), 0);
  EXPECT_THAT(now["changes"].dump(), HasSubstr("microbatches of equal length"));
  const Json segment = Json::parse(text_of(path("run") + "/run.json"))["segments"].back();
  const auto predicted =
      segment["predicted_peak_bytes"].get<PeakBytes>();  // Of SGD, without state.
  EXPECT_EQ(now["now"]["peak_bytes"], layout::largest_peak_bytes(predicted));
  run({"explain", path("nothing")}, 1);
  const auto refused =
      run({"partition", "--graph", path("train.graph.json"), "--front", path("front")}, 2);
  EXPECT_THAT(refused->error(), HasSubstr("give --profile"));
}

// A second training begins where the first has ended; names of another model's tensors and what does not fit are said.
TEST_F(RankTest, BeginWithTheWeightsOfAFile) {
  const auto words = [](const char* model, const Words& more) {
    return with({"--model", model, "train", "--batch", "8", "--microbatch", "2", "--steps", "2",
                 "--stages", "2"},
                more);
  };
  run(words("mlp", {"--save", path("first")}));
  const auto still = run(words("mlp", {"--init-from", path("first"), "--learning-rate", "0",
                                       "--weight-decay", "0", "--save", path("second")}));
  EXPECT_THAT(still->out(), HasSubstr(" tensors from '" + path("first") + "'"));
  EXPECT_TRUE(text_of(path("first")) == text_of(path("second")));
  // A run that goes on has weights of its own: the file may be gone.
  run(words("mlp",
            {"--init-from", path("first"), "--run", path("run"), "--checkpoint-every", "1"}));
  std::filesystem::remove(path("second"));
  std::filesystem::rename(path("first"), path("gone"));
  run({"--model", "mlp", "train", "--run", path("run"), "--resume", "--steps", "3"});
  std::filesystem::rename(path("gone"), path("first"));
  run(words("gated", {"--init-from", path("first")}), 2);
  EXPECT_THAT(error_of(0), HasSubstr("to take what fits: --init-partial"));
  const auto partial = run(words("gated", {"--init-from", path("first"), "--init-partial"}));
  EXPECT_THAT(partial->out(), HasSubstr("as the model makes them: "));
}

// From costs to weights with two stages on a rank, and by a schedule of one's own.
TEST_F(RankTest, SeveralStagesOnARankArePlannedAndTrained) {
  const Words model = {"--model", "mlp"};
  run(with(model, {"record", "--out", folder}));
  run(with(model, {"profile", "--ranks", "2", "--microbatch", "2", "--offload-folder", folder,
                   "--out", path("profile.json"), "--topology", path("topology.json")}));
  const auto partition = run(with(
      model, {"partition", "--graph", path("train.graph.json"), "--profile", path("profile.json"),
              "--topology", path("topology.json"), "--batch", "8", "--stages", "4", "--schedule",
              "v_min", "--offload", "all", "--out", path("plan.json")}));
  EXPECT_THAT(partition->out(), HasSubstr("stage 3"));
  EXPECT_THAT(partition->out(), HasSubstr("in files between F and B on stages 0 1 2 3"));
  const layout::Plan plan = layout::load(path("plan.json"));
  EXPECT_EQ(plan.stages.size(), 4U);
  EXPECT_EQ(layout::train_role(plan).mesh.pipeline, 2);
  const auto training =
      run(with(model, {"train", "--steps", "2", "--plan", path("plan.json"), "--profile",
                       path("profile.json"), "--topology", path("topology.json"),
                       "--offload-folder", folder, "--save", path("planned")}));
  EXPECT_THAT(training->out(), HasSubstr("(predicted"));
  schedule::save(schedule::make_schedule("v_half", 4, 4, 2), path("own.json"));
  run(with(model,
           {"partition", "--graph", path("train.graph.json"), "--batch", "8", "--microbatch", "2",
            "--stages", "4", "--schedule-file", path("own.json"), "--out", path("own.plan.json")}));
  EXPECT_EQ(layout::load(path("own.plan.json")).schedule.name, "custom");
  run(with(model,
           {"train", "--steps", "2", "--plan", path("own.plan.json"), "--save", path("own")}));
  EXPECT_TRUE(text_of(path("planned")) == text_of(path("own")));
}

TEST_F(RankTest, OtherNumberOfRanksThanThePlanHas) {
  run({"--model", "gated", "partition", "--stages", "2", "--out", path("plan.json")});
  const Words words = {"--model", "gated", "train", "--plan", path("plan.json"), "--ranks", "3"};
  EXPECT_THAT(run(words, 2)->error(), HasSubstr("the plan is for 2 ranks and --ranks says 3"));
  EXPECT_EQ(errors(), "") << "ranks were started";
}

TEST_F(RankTest, APlanForSeveralIsNotTrainedByOne) {
  run({"--model", "gated", "partition", "--stages", "2", "--out", path("plan.json")});
  run({"--model", "gated", "train", "--plan", path("plan.json"), "--ranks", "1"}, 2);
}

TEST_F(RankTest, VerifyThemselves) {
  const auto verified = run({"--model", "gated", "verify", "--batch", "8", "--microbatch", "2",
                             "--lanes", "2", "--stages", "2", "--replicas", "2", "--steps", "2"});
  EXPECT_THAT(verified->out(), HasSubstr("against the serial executor: same bits"));
  EXPECT_THAT(verified->out(), HasSubstr("against the uncut: same bits"));
  EXPECT_THAT(verified->out(), HasSubstr("against the plain loop: "));
}

TEST_F(RankTest, VerifyShardsOfTensors) {
  const auto verified = run({"--model", "transformer", "verify", "--batch", "8", "--microbatch",
                             "2", "--lanes", "2", "--shards", "2", "--steps", "2"});
  EXPECT_THAT(verified->out(), HasSubstr("2 shards on 2 ranks"));
  EXPECT_THAT(verified->out(), HasSubstr("against one process with all shards: same bits"));
  EXPECT_THAT(verified->out(), HasSubstr("against whole model: within tolerance"));
}

TEST_F(RankTest, WhatCannotBeWrittenIsNoticedBeforeTheFirstStep) {
  const auto training =
      run(with(kTinyTraining, {"--stages", "2", "--save", "/nowhere/weights"}), 1);
  EXPECT_EQ(training->out(), "");
  EXPECT_THAT(training->error(), HasSubstr("cannot write into '/nowhere'"));
  EXPECT_EQ(errors(), "") << "ranks were started";
}

// It exited with 0.
TEST_F(RankTest, OutputThatIsLostIsAFailure) {
  schedule::save(schedule::make_schedule("simple", 2, 4), path("schedule.json"));
  for (const Words& words : std::vector<Words>{{"show", path("schedule.json")}, {"--help"}}) {
    Process process(words, {}, "/dev/full", path("error"));
    EXPECT_EQ(process.wait(), 1) << words[0];
    EXPECT_THAT(process.error(), HasSubstr("standard output took not all that was printed"));
  }
}

TEST_F(RankTest, WhatALauncherLeftInTheEnvironmentIsNotTaken) {
  const auto process = start(with(kTinyTraining, {"--stages", "2"}),
                             {{"TRIREME_LAUNCHER_PID", "1"}, {"TRIREME_STORE_PORT", "1"}});
  EXPECT_EQ(process->wait(), 0) << process->error() << errors();
}

// Each rank said it, with `(rank 0, group gather, operation all_gather, sequence 0)`.
TEST_F(RankTest, MisuseThatRanksFindIsSaidOnce) {
  const auto launcher = run(with(kTinyTraining, {"--cut-at", "nowhere"}), 2);
  EXPECT_THAT(error_of(0), HasSubstr("'nowhere' is neither a position nor the name of a node"));
  EXPECT_EQ(lines_of(error_of(0)).size(), 1U);
  EXPECT_EQ(launcher->error(), "");
  EXPECT_THAT(error_of(0), Not(HasSubstr("rank")));
  EXPECT_EQ(error_of(1), "");
}

// `the plan is for 1 ranks`, though none was given.
TEST_F(RankTest, PlanByThemselvesWithoutARunFolder) {
  const auto training = run(with(kTinyTraining, {"--ranks", "2"}));
  EXPECT_THAT(training->out(), AllOf(HasSubstr("no plan is given: the ranks measure and plan\n"),
                                     HasSubstr("(predicted"), HasSubstr("--lanes 2 up to 2")));
}

// It trained a tokenizer before it looked at the batch.
TEST_F(RankTest, MisuseIsFoundBeforeModelsAreMade) {
  for (const Words& words : std::vector<Words>{{"--lanes", "3"},
                                               {"--microbatch", "3"},
                                               {"--lanes", "2", "--replicas", "3"},
                                               {"--optimizer", "adam"},
                                               {"--learning-rate", "1e308"},
                                               {"--plan", path("nowhere")},
                                               {"--ranks", "3", "--stages", "2"}}) {
    Words all = {"--model", "gated", "train", "--steps", "1"};
    if (words[0] != "--plan") all.insert(all.end(), {"--batch", "8", "--microbatch", "2"});
    const auto process = start(with(all, words));
    EXPECT_NE(process->wait(), 0) << words[0];
    EXPECT_EQ(errors(), "") << "ranks were started";
    EXPECT_EQ(lines_of(process->error()).size(), 1U) << process->error();
  }
}

TEST_F(RankTest, ErrorsOfTorchAreOneLine) {
  run({"--model", "misshapen", "train", "--ranks", "2"}, 1);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(error_of(rank), HasSubstr("shapes cannot be multiplied"));
    EXPECT_EQ(lines_of(error_of(rank)).size(), 1U) << error_of(rank);
  }
}

}  // namespace
}  // namespace trireme::command::test
