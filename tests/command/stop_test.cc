// A training that is asked to stop ends after its step, saves and exits with 0: on preemption
// nothing is lost.

#include "tests/command/resume.h"
#include "trireme/base/json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

class Stop : public Resume {
 protected:
  static Words endless(const std::string& run, int ranks) {
    Words words = training(run, ranks, 1'000'000);
    *(std::find(words.begin(), words.end(), "--checkpoint-every") + 1) = "0";
    return words;
  }

  static void send(pid_t process, int signal) {
    ASSERT_GT(process, 1);
    ASSERT_EQ(::kill(process, signal), 0);
  }

  /// The run has a checkpoint of its last step, goes on from it, and run.json says what happened.
  void expect_saved(const Process& launcher) {
    const std::int64_t step = expect_whole("run");
    EXPECT_GE(step, 3);
    EXPECT_THAT(launcher.out(), HasSubstr("stopped after " + std::to_string(step) + " of 1000000"));
    const Json run_document = Json::parse(text_of(path("run") + "/run.json"));
    EXPECT_EQ(run_document["segments"].back()["ended"], "stopped");
    EXPECT_EQ(run_document["segments"].back()["stopped_at"], step);
    EXPECT_GT(run_document["segments"].back()["median_step_ms"], 0);
    run(training(path("run"), 1, static_cast<int>(step) + 1));
    EXPECT_EQ(expect_whole("run"), step + 1);
  }
};

// A checkpoint was not written, and the exit code was 143.
TEST_F(Stop, TheLauncherOfRanks) {
  const auto launcher = start(endless(path("run"), 2));
  wait_for_steps(3);
  send(launcher->pid(), SIGTERM);
  EXPECT_EQ(launcher->wait(), 0) << launcher->error() << errors();
  EXPECT_THAT(launcher->out(), HasSubstr("signal 15 (Terminated); --resume trains the rest"));
  expect_saved(*launcher);
}

TEST_F(Stop, AProcessWithoutRanks) {
  const auto process = start(endless(path("run"), 1));
  wait_for_steps(3);
  send(process->pid(), SIGTERM);
  send(process->pid(), SIGTERM);  // a terminal and a launcher may both send it
  EXPECT_EQ(process->wait(), 0) << process->error();
  EXPECT_GE(expect_whole("run"), 3);
}

// Ten minutes of an evaluation had to pass.
TEST_F(Stop, InAnEvaluation) {
  Words words = training(path("run"), 2, 1'000'000);
  *std::find(words.begin(), words.end(), "transformer") = "endlessly_evaluated";
  const auto launcher = start(words);
  wait_for_event("evaluate", 0);
  send(launcher->pid(), SIGTERM);
  EXPECT_EQ(launcher->wait(), 0) << launcher->error() << errors();
  EXPECT_THAT(launcher->out(), HasSubstr("stopped after 1 of 1000000"));
  EXPECT_EQ(expect_whole("run"), 1);
  EXPECT_EQ(num_steps("run"), lines_of(text_of(path("run") + "/metrics.jsonl")).size());
}

TEST_F(Stop, WhereAnEvaluationIsGoodEnough) {
  Words words = endless(path("run"), 2);
  words.insert(words.end(), {"--evaluate-every", "2", "--target", "1000"});
  const auto launcher = start(words);
  EXPECT_EQ(launcher->wait(), 0) << launcher->error() << errors();
  EXPECT_THAT(launcher->out(), HasSubstr("stopped after 1 of 1000000"));
  EXPECT_THAT(launcher->out(), HasSubstr("--target is 1000"));
  EXPECT_EQ(expect_whole("run"), 1);
}

// A rank of several is enough for the latter.
TEST_F(Stop, ASignalForACheckpointEndsNothing) {
  const auto launcher = start(endless(path("run"), 2));
  const pid_t rank = wait_for_event("start", 1);
  wait_for_steps(3);
  send(launcher->pid(), SIGUSR1);
  wait_until([this] { return checkpoints("run").newest().has_value(); }, "a checkpoint");
  wait_for_steps(num_steps("run") + 2);
  send(rank, SIGINT);
  EXPECT_EQ(launcher->wait(), 0) << launcher->error() << errors();
  EXPECT_GE(checkpoints("run").steps().size(), 2U);
}

// With --save alone the weights are written; without anything to keep, a signal is what it was.
TEST_F(Stop, KeepsWhatThereIsToKeep) {
  const Words words = {"--model", "gated",   "train",     "--batch",      "8", "--microbatch", "2",
                       "--steps", "1000000", "--metrics", path("metrics")};
  const auto wait_for_metrics = [this] {
    wait_until([this] { return lines_of(text_of(path("metrics"))).size() > 2; }, "steps");
    std::filesystem::remove(path("metrics"));
  };
  for (const bool is_serial : {false, true}) {
    Words saving_words = saving(words, "weights");
    if (is_serial) saving_words.push_back("--serial");
    const auto process = start(saving_words);
    wait_for_metrics();
    send(process->pid(), SIGTERM);
    EXPECT_EQ(process->wait(), 0) << process->error();
    EXPECT_FALSE(text_of(path("weights")).empty());
    std::filesystem::remove(path("weights"));
  }
  const auto process = start(words);
  wait_for_metrics();
  send(process->pid(), SIGTERM);
  EXPECT_EQ(process->wait(), -1);
}

}  // namespace
}  // namespace trireme::command::test
