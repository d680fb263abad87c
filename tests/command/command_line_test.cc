#include "trireme/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include "tests/command/verb_runs.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/base/safetensors.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/profile/profile_json.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Another model, whose graph is not that of make_net.
Workload make_other() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(4, 2);
  return {make_model(net, [net](const Batch& b) { return net->forward(b["x"]).square().mean(); }),
          tensor_source({{"x", torch::randn({40, 4})}}), nullptr};
}

TEST_F(CommandLine, GoesFromAModelToTrainedWeights) {
  Answer answer = run(make_net, {"record", "--out", folder_.string()});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("allowed cuts"));
  answer = run(make_net,
               {"partition", "--graph", path("train.graph.json"), "--cut-at", "3,out/t", "--batch",
                "8", "--microbatch", "2", "--lanes", "2", "--out", path("plan.json")});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("3 stages"));
  answer = run(make_net, {"show", path("plan.json"), "--graph", path("train.graph.json")});
  ASSERT_EQ(answer.code, 0) << answer.err;
  answer = run(make_net, {"verify", "--serial", "--plan", path("plan.json"), "--steps", "3"});
  ASSERT_EQ(answer.code, 0) << answer.out << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("same bits"));
  answer = run(make_net, {"train", "--serial", "--plan", path("plan.json"), "--steps", "30",
                          "--save", path("weights.safetensors"), "--optimizer", "sgd",
                          "--learning-rate", "0.1", "--clip-norm", "1"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("peak of live tensors"));
  const auto bytes = read_file_bytes(path("weights.safetensors"));
  EXPECT_EQ(safetensors::parse(bytes, "weights").tensors.size(), 4U);
}

/// After its recording, which calls it three times, it is another model.
Workload make_fickle() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(4, 2);
  const auto calls = std::make_shared<int>(0);
  return {make_model(net,
                     [net, calls](const Batch& batch) {
                       const double factor = ++*calls > 3 ? 2 : 1;
                       return net->forward(batch["x"]).mul(factor).square().mean();
                     }),
          tensor_source({{"x", torch::randn({40, 4})}}), nullptr};
}

TEST_F(CommandLine, TrainsNothingThatIsNotTheModelUnlessAskedTo) {
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--serial"}, std::vector<std::string>{}}) {
    std::vector<std::string> words = {"train", "--steps", "2", "--batch", "8", "--microbatch", "2"};
    words.insert(words.end(), how.begin(), how.end());
    const Answer refused = run(make_fickle, words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("before the first step"));
    words.insert(words.end(), {"--no-first-step-check", "--no-drift-check"});
    const Answer trained = run(make_fickle, words);
    EXPECT_EQ(trained.code, 0) << trained.err;
  }
}

TEST_F(CommandLine, APlanDoesNotChangeWhatIsLearnt) {
  const std::vector<std::string> common = {"train",   "--serial", "--steps",      "10",
                                           "--batch", "8",        "--microbatch", "2",
                                           "--lanes", "2",        "--save"};
  const auto with = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words = common;
    words.push_back(file);
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(make_net, words).code, 0);
    return read_file(file);
  };
  const std::string whole = with(path("a"), {});
  EXPECT_EQ(whole, with(path("b"), {"--cut-at", "2,5"}));
  EXPECT_NE(whole, with(path("c"), {"--seed", "1"}));
}

TEST_F(CommandLine, AnswersInJsonWhereAsked) {
  Answer answer = run(make_net, {"--json", "record", "--out", folder_.string()});
  EXPECT_EQ(Json::parse(answer.out)["train"]["parameters"], 4);
  answer = run(make_net, {"verify", "--steps", "2", "--json"});
  EXPECT_TRUE(Json::parse(answer.out)[0]["bitwise"].get<bool>());
  answer = run(make_net, {"train", "--steps", "1", "--json"});
  const std::string first_line = answer.out.substr(0, answer.out.find('\n'));
  EXPECT_GT(Json::parse(first_line)["loss"].get<double>(), 0);
}

TEST_F(CommandLine, ReadsOptionsFromAFile) {
  write_file_atomically(path("options.toml"),
                        std::string_view("[train]\nsteps = 2\nbatch = 8\nmicrobatch = 4\n"));
  const Answer answer = run(make_net, {"--config", path("options.toml"), "train"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("step      1"));
}

TEST_F(CommandLine, SimulatesStepsWhoseTimesDiffer) {
  ASSERT_EQ(run(make_net, {"record", "--out", folder_.string()}).code, 0);
  const std::vector<std::string> files = {"--graph",    path("train.graph.json"),
                                          "--profile",  path("profile.json"),
                                          "--topology", path("topology.json")};
  ASSERT_EQ(run(make_net, {"profile", "--microbatch", "2", "--out", path("profile.json"),
                           "--topology", path("topology.json")})
                .code,
            0);
  std::vector<std::string> words = {"partition", "--batch", "8", "--out", path("plan.json")};
  words.insert(words.end(), files.begin(), files.end());
  ASSERT_EQ(run(make_net, words).code, 0);
  words = {"simulate", "--plan", path("plan.json")};
  words.insert(words.end(), files.begin(), files.end());
  EXPECT_EQ(run(make_net, words).out.find("at random"), std::string::npos);
  words.insert(words.end(), {"--slow-part", "0.5", "--slow-factor", "3"});
  EXPECT_THAT(run(make_net, words).out, HasSubstr("\n100 steps whose times differ at random: "));
  words.insert(words.end(), {"--random-steps", "50", "--json"});
  const Json json = Json::parse(run(make_net, words).out);
  const Json& steps = json["random_steps"];
  EXPECT_NEAR(steps["slowest_ms"].get<double>(), 3 * json["step_ms"].get<double>(), 1e-9);
  EXPECT_GT(steps["mean_ms"], json["step_ms"]);
  EXPECT_LT(steps["mean_ms"], steps["slowest_ms"]);
  EXPECT_EQ(Json::parse(run(make_net, words).out), json);
  words.insert(words.end(), {"--spread", "-1"});
  EXPECT_EQ(run(make_net, words).code, 2);
}

TEST_F(CommandLine, EveryVerbShowsAnExample) {
  for (const std::string verb : {"record", "profile", "partition", "shard", "simulate", "train",
                                 "verify", "report", "show"}) {
    const Answer answer = run(make_net, {verb, "--help"});
    EXPECT_EQ(answer.code, 0);
    EXPECT_THAT(answer.out, HasSubstr("Example: program " + verb));
  }
}

TEST_F(CommandLine, ShardsAreOfOneStageAndOneReplica) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--stages", "2"}, {"--replicas", "2"}, {"--serial"}}) {
    std::vector<std::string> words = {"verify", "--shards", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = run(make_net, words);
    EXPECT_EQ(answer.code, 2) << more[0];
    EXPECT_THAT(answer.err, HasSubstr("one stage and one replica"));
  }
}

TEST_F(CommandLine, MisuseEndsWithTwo) {
  EXPECT_EQ(run(make_net, {}).code, 2);
  EXPECT_EQ(run(make_net, {"fly"}).code, 2);
  EXPECT_EQ(run(make_net, {"train", "--stepz", "3"}).code, 2);
  EXPECT_EQ(run(make_net, {"train", "--steps", "-1"}).code, 2);
  EXPECT_EQ(run(make_net, {"train", "--plan", "p.json", "--batch", "8"}).code, 2);
  Answer answer = run(make_net, {"train", "--batch", "10", "--microbatch", "4"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("does not divide"));
  answer = run(make_net, {"partition", "--cut-at", "nowhere", "--out", path("p.json")});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("nor the name of a node"));
  const auto refusal = [&](const std::string& option, const std::string& value) {
    answer = run(make_net, {"partition", option, value, "--out", path("p.json")});
    EXPECT_EQ(answer.code, 2);
    return answer.err;
  };
  EXPECT_THAT(refusal("--stage-of", "0"), HasSubstr("'0': expected NAME=STAGE, as decoder.3=1"));
  EXPECT_THAT(refusal("--stage-of", "a=b"), HasSubstr("expected NAME=STAGE"));
  EXPECT_THAT(refusal("--stage-of", "0=1"), HasSubstr("--stage-of wants costs to decide by"));
  EXPECT_THAT(refusal("--balance", "tree"), HasSubstr("--balance wants costs to decide by"));
  answer = run(make_net, {"train", "--optimizer", "adam"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("there are adafactor, adamw, lamb, lars, novograd and sgd"));
  EXPECT_EQ(run(make_net, {"--model", "net2", "train"}).code, 2);
}

TEST_F(CommandLine, ForeignAndUnreadableFilesAreNamed) {
  Answer answer = run(make_net, {"show", path("missing.json")});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("missing.json"));
  write_file_atomically(path("foreign.json"), std::string_view("{\"format\": \"something\"}"));
  answer = run(make_net, {"train", "--plan", path("foreign.json")});
  EXPECT_NE(answer.code, 0);
  EXPECT_THAT(answer.err, HasSubstr("foreign.json"));
  write_file_atomically(path("noise.json"), std::string_view("\x80\xff\x00noise", 8));
  EXPECT_NE(run(make_net, {"show", path("noise.json")}).code, 0);
  answer = run(make_net, {"train", "--steps", "1", "--save", path("no/such/folder/w")});
  EXPECT_EQ(answer.code, 1);
}

// Only `train` took policies, so that a plan file for replicas could not be made by `partition`.
TEST_F(CommandLine, PlanningKnowsPoliciesOfBuffers) {
  ASSERT_EQ(run(make_net, {"profile", "--microbatch", "2", "--out", path("profile.json"),
                           "--topology", path("topology.json")})
                .code,
            0);
  const std::vector<std::string> words = {"partition",
                                          "--profile",
                                          path("profile.json"),
                                          "--topology",
                                          path("topology.json"),
                                          "--batch",
                                          "8",
                                          "--out",
                                          path("plan.json")};
  EXPECT_EQ(run(make_net, words).code, 0);
  std::vector<std::string> with_policy = words;
  with_policy.insert(with_policy.end(), {"--buffer", "nothing=first"});
  const Answer answer = run(make_net, with_policy);
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, testing::HasSubstr("'nothing' takes no policy"));
}

// What the profile has no times for cannot be planned by it.
TEST_F(CommandLine, AnotherMicrobatchThanTheProfilesIsRefused) {
  ASSERT_EQ(run(make_net, {"record", "--out", folder_.string()}).code, 0);
  const graph::Graph recorded = graph::load(path("train.graph.json"));
  profile::Profile measured;
  measured.graph_sha256 = graph::graph_sha256(recorded);
  measured.microbatch = 2;
  measured.costs.resize(1);
  measured.cost_of.assign(recorded.nodes.size(), 0);
  profile::save(measured, path("profile.json"));
  const Answer answer = run(make_net, {"partition", "--graph", path("train.graph.json"),
                                       "--profile", path("profile.json"), "--batch", "8",
                                       "--microbatch", "4", "--out", path("plan.json")});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("--microbatch says 4, but the profile measured 2; profile "
                                    "with --microbatch 4, or leave it out"));
  EXPECT_FALSE(std::filesystem::exists(path("plan.json")));
}

// It was silent until the first step, and at the end the weights were nowhere.
TEST_F(CommandLine, ATrainingSaysWhatItDoesBeforeItsFirstStep) {
  std::vector<std::string> words = {"train", "--steps", "1", "--batch", "8", "--microbatch", "2"};
  Answer answer = run(make_net, words);
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, StartsWith("preparing data, recording the model\n"
                                     "the weights are not kept: give --run or --save\n"
                                     "step      0  "));
  words.insert(words.end(), {"--save", path("weights.safetensors")});
  answer = run(make_net, words);
  EXPECT_THAT(answer.out, StartsWith("preparing data, recording the model\nstep      0  "));
}

// `head->weight = embedding->weight` left a second weight, which no step changed.
TEST_F(CommandLine, AParameterThatIsNeverTrainedIsNamed) {
  const MakeWorkload make = [] {
    Workload workload = make_net();
    workload.model.parameters.push_back({"head.weight", torch::zeros({2}, torch::requires_grad())});
    return workload;
  };
  const std::vector<std::string> words = {"train", "--steps", "1"};
  const Answer answer = run(make, words);
  EXPECT_EQ(answer.code, 0);
  EXPECT_THAT(answer.err, HasSubstr("the loss depends on no use of the parameter head.weight: it "
                                    "is saved and never trained"));
  EXPECT_THAT(run(make_net, words).err, Not(HasSubstr("never trained")));
}

class OneStepRun : public CommandLine {
 protected:
  /// In the folder `run`. Under a plan: nothing is measured.
  Answer train(const MakeWorkload& make) const {
    EXPECT_EQ(run(make, {"partition", "--out", path("plan.json")}).code, 0);
    return run(make, {"train", "--run", path("run"), "--plan", path("plan.json"), "--steps", "1"});
  }
};

// Dropout was on while they were made.
TEST_F(OneStepRun, ExamplesAreMadeInEvaluationMode) {
  std::shared_ptr<torch::nn::Module> shown;
  const MakeWorkload make = [&shown] {
    Workload workload = make_net();
    const auto net = std::make_shared<Net>();
    workload.model = make_model(net);
    workload.examples = [net, &shown] {
      shown = net;
      return std::string(net->is_training() ? "in training" : "in evaluation");
    };
    return workload;
  };
  const Answer answer = train(make);
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("in evaluation\n"));
  EXPECT_EQ(read_file(path("run/examples.txt")), "in evaluation");
  ASSERT_TRUE(shown);
  EXPECT_TRUE(shown->is_training()) << "the mode was not put back";
}

// It would have been a file from then on.
TEST_F(OneStepRun, ItsExportReplacesNoPipe) {
  ASSERT_EQ(train(make_net).code, 0);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const Answer answer = run(make_net, {"export", path("run"), "--out", path("pipe")});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("pipe' is a pipe, which is not replaced; name a file"));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

TEST_F(CommandLine, APlanOfAnotherModelIsRefused) {
  ASSERT_EQ(run(make_other, {"partition", "--out", path("plan.json")}).code, 0);
  const Answer answer = run(make_net, {"train", "--serial", "--plan", path("plan.json")});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("another graph"));
}

TEST_F(CommandLine, AModelThatCannotBeRecordedSaysWhy) {
  const MakeWorkload make = [] {
    const auto net = std::make_shared<torch::nn::LinearImpl>(4, 2);
    const auto forward = [net](const Batch& b) {
      const auto y = net->forward(b["x"]);
      return y.mean() * y.max().item<float>();
    };
    return Workload{make_model(net, forward), tensor_source({{"x", torch::randn({40, 4})}}),
                    nullptr};
  };
  const Answer answer = run(make, {"train"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("aten::item"));
}

TEST_F(CommandLine, ErrorsOfTorchAreOneLine) {
  const MakeWorkload make = [] {
    const auto net = std::make_shared<torch::nn::LinearImpl>(3, 2);  // the data has 4 features
    return Workload{make_model(net, [net](const Batch& b) { return net->forward(b["x"]).mean(); }),
                    tensor_source({{"x", torch::randn({40, 4})}}), nullptr};
  };
  const Answer answer = run(make, {"train"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("shapes cannot be multiplied"));
  EXPECT_THAT(answer.err, Not(HasSubstr("frame #")));
}

TEST_F(CommandLine, RecordsAreReadWithoutAModel) {
  std::string lines;
  for (int i = 10; i < 30; ++i)
    lines += R"({"text":"abcdef","number":)" + std::to_string(i) + "}\n";
  write_file_atomically(path("x.jsonl"), lines);
  const std::vector<std::string> words = {"profile-data", "--records", path("x.jsonl"),
                                          "--samples",    "20",        "--batch",
                                          "10",           "--threads", "2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run(make_net, all);
  };
  const Answer answer = with({"--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(Json::parse(answer.out)["runs"][0]["parts"]["read"]["bytes"], 20 * (6 + 2));
  EXPECT_THAT(with({}).out, HasSubstr("20 records in shuffled order"));
  EXPECT_EQ(with({"--model", "model"}).code, 2);
}

}  // namespace
}  // namespace trireme
