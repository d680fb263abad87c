#include <gmock/gmock.h>

#include "tests/command/verb_runs.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

class PlanVerb : public CommandLine {};
class ValidateVerb : public CommandLine {
 protected:
  /// Two sources with four runs each, one row that cannot be predicted.
  std::string runs_file() const {
    std::string text =
        "source,model,gpus,gpu_type,tp,pp,dp,microbatch,global_batch,seq_len,step_time_s\n";
    for (const char* source : {"Alpha", "Beta"}) {
      for (const char* rest :
           {"GPT 1.7B,32,A100,1,1,32,16,512,2048,2.7", "GPT 3.6B,64,A100,2,1,32,16,512,2048,2.8",
            "GPT 7.5B,128,A100,4,1,32,16,512,2048,2.9",
            "GPT 18B,256,A100,8,1,32,8,1024,2048,7.4"}) {
        text += std::string(source) + "," + rest + "\n";
      }
    }
    text += "Beta,GPT 18B,256,A100,8,1,32,,1024,2048,7.4\n";
    write_file_atomically(path("runs.csv"), text);
    return path("runs.csv");
  }
};

TEST_F(PlanVerb, PrintsLayoutsAndThePublishedOne) {
  const Answer answer =
      run(make_net, {"plan", "gpt-7.5b", "--topology", "dgx_a100", "--hosts", "16", "--type", "f16",
                     "--samples", "1000000", "--most", "3"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("16 hosts dgx_a100 of 8 A100-80; batch 512"));
  EXPECT_THAT(answer.out,
              HasSubstr("tensor 4 x pipeline 1 x data 32, microbatch 16; 3.70 s a step"));
  const Json json = Json::parse(run(make_net, {"plan", "gpt-7.5b", "--topology", "dgx_a100",
                                               "--hosts", "16", "--most", "3", "--json"})
                                    .out);
  EXPECT_EQ(json["best"].size(), 3U);
}

/// A training of so many tokens has as many in each layout, however long its samples are.
TEST_F(PlanVerb, DaysOfTokensDoNotDependOnTheSearchedLength) {
  const auto published_days = [&](const char* length) {
    const Answer answer = run(make_net, {"plan", "gpt-18b", "--topology", "dgx_a100", "--hosts",
                                         "32", "--tokens", "3e11", "--seq-len", length});
    const std::size_t at = answer.out.find("predicted ");
    EXPECT_NE(at, std::string::npos) << answer.out << answer.err;
    return answer.out.substr(at, answer.out.find(" days", at) - at);
  };
  EXPECT_EQ(published_days("2048"), published_days("4096"));
}

TEST_F(PlanVerb, FailuresMakeATrainingLonger) {
  const std::vector<std::string> words = {"plan",
                                          "gpt-7.5b",
                                          "--topology",
                                          "dgx_a100",
                                          "--hosts",
                                          "16",
                                          "--samples",
                                          "1e6",
                                          "--most",
                                          "1",
                                          "--mtbf-hours",
                                          "160",
                                          "--restart-seconds",
                                          "900"};
  EXPECT_THAT(run(make_net, words).out,
              testing::AllOf(
                  HasSubstr("with failures"),
                  HasSubstr("a failure every 10.0 hours; with a checkpoint every 34.0 minutes")));
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--checkpoint-every", "36000", "--json"});
  const Json json = Json::parse(run(make_net, more).out);
  EXPECT_EQ(json["goodput"]["interval_s"], 36000);
  const double part = json["goodput"]["part"], days = json["best"][0]["days"];
  EXPECT_DOUBLE_EQ(json["best"][0]["days_with_failures"], days / part);
  EXPECT_LT(part, 0.6);  // every second hour of ten is lost
  EXPECT_THAT(run(make_net, {"plan", "gpt-7.5b", "--restart-seconds", "1"}).err,
              HasSubstr("--mtbf-hours"));
}

TEST_F(PlanVerb, SaysWhatWasNeverComparedWithARun) {
  EXPECT_THAT(run(make_net, {"plan", "gpt-7.5b", "--topology", "h800"}).out,
              HasSubstr("no published run on H800 was compared with"));
  EXPECT_THAT(run(make_net, {"plan", "gpt-7.5b", "--topology", "dgx_a100"}).out,
              Not(HasSubstr("was compared with")));
}

TEST_F(PlanVerb, RefusesWhatIsNotKnown) {
  const Answer model = run(make_net, {"plan", "gpt-9"});
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("there is no model 'gpt-9'; known are: gpt-1.7b"));
  const Answer machine = run(make_net, {"plan", "gpt-1.7b", "--topology", "p9"});
  EXPECT_EQ(machine.code, 2);
  EXPECT_THAT(machine.err, HasSubstr("there is no machine 'p9'; known are: p3dn"));
  EXPECT_EQ(run(make_net, {"plan", "gpt-1.7b", "--hosts", "0"}).code, 2);
  EXPECT_EQ(run(make_net, {"plan", "gpt-1.7b", "--hosts", "2305843009213693952"}).code, 2);
  const Answer type = run(make_net, {"plan", "gpt-1.7b", "--topology", "p3dn", "--type", "bf16"});
  EXPECT_EQ(type.code, 2);
  EXPECT_THAT(type.err, HasSubstr("V100-32 has no products of bf16; give one of f32, f16"));
  EXPECT_EQ(run(make_net, {"plan", "gpt-1.7b", "--topology", "p3dn"}).code, 0);  // f16 then
  EXPECT_EQ(run(make_net, {"plan", "resnet50", "--tokens", "1e9"}).code, 2);
  EXPECT_EQ(run(make_net, {"plan", "gpt-1.7b", "--samples", "1", "--tokens", "1"}).code, 2);
}

TEST_F(ValidateVerb, JudgesWhatDidNotCalibrate) {
  const std::string file = runs_file();
  const Answer answer = run(make_net, {"validate", file, "--calibrate", "alpha", "--rows"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("8 of 9 rows can be predicted; 4 calibrate, 4 are judged"));
  EXPECT_THAT(answer.out, HasSubstr("no microbatch: 1, rows 10"));
  const Json json =
      Json::parse(run(make_net, {"validate", file, "--leave-out", "source", "--json"}).out);
  EXPECT_EQ(json["groups"].size(), 2U);
  EXPECT_EQ(json["all"]["cases"], 8);
  // A file may calibrate for another one.
  write_file_atomically(
      path("mine.csv"),
      "source,model,gpus,gpu_type,tp,pp,dp,microbatch,global_batch,seq_len,step_time_s\n"
      "Mine,GPT 39B,512,A100,8,2,32,4,1536,2048,11.4\n");
  const Answer mine = run(make_net, {"validate", file, path("mine.csv"), "--calibrate", "alpha",
                                     "beta", "--judge", "mine"});
  EXPECT_THAT(mine.out, HasSubstr("8 calibrate, 1 are judged")) << mine.err;
}

TEST_F(ValidateVerb, RefusesWhatMeansNothing) {
  const std::string file = runs_file();
  EXPECT_THAT(run(make_net, {"validate", file}).err, HasSubstr("--calibrate SOURCE"));
  EXPECT_EQ(run(make_net, {"validate", file, "--calibrate", "gamma"}).code, 2);
  EXPECT_EQ(run(make_net, {"validate", file, "--calibrate", "alpha", "--leave-out", "group"}).code,
            2);
  EXPECT_EQ(run(make_net, {"validate", path("none.csv"), "--calibrate", "all"}).code, 1);
}

class TopologyVerb : public CommandLine {};

TEST_F(TopologyVerb, WritesWhatShowReads) {
  const Answer found = run(make_net, {"topology", "detect", "--out", path("topology.json")});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("host 0: "));
  const Answer shown = run(make_net, {"show", path("topology.json")});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(found.out, HasSubstr(shown.out.substr(shown.out.find("host 0: "))));
  const Answer misspelt = run(make_net, {"topology", "find"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("detect"));
}

}  // namespace
}  // namespace trireme
