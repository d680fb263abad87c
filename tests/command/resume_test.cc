// A run that is killed goes on from its last checkpoint, on any number of ranks, bit for bit.

#include "tests/command/resume.h"

#include <iterator>
#include <map>
#include <set>

#include "tests/base/small_disk.h"
#include "trireme/base/json.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/plan/profile/profile_json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

TEST_F(Resume, AfterKillsAtAnyMoment) { expect_same_bits_after_kills(3, 7); }

// Two replicas with shards of two stages are killed; one process goes on, and shards again.
TEST_F(Resume, ParametersInShardsGoOnInOtherLayouts) {
  const auto words = [&](const std::string& run, int ranks, int steps) {
    Words all = training(path(run), ranks, steps);
    const std::string replicas = std::to_string(ranks);
    all.insert(all.end(), {"--stages", "2", "--stages-per-rank", "2", "--replicas", replicas,
                           "--schedule", "simple", "--shard-parameters"});
    return all;
  };
  const auto launcher = start(words("run", 2, 1'000'000));
  wait_for_steps(8);
  launcher->kill();
  EXPECT_EQ(launcher->wait(), -1);
  expect_no_process();
  const int done = static_cast<int>(expect_whole("run"));
  EXPECT_GT(done, 0);
  run(training(path("run"), 1, done + 2));
  run(saving(words("run", 2, done + 4), "weights"));
  run(saving(training(path("undisturbed"), 1, done + 4), "expected"));
  EXPECT_TRUE(text_of(path("weights")) == text_of(path("expected")));
}

TEST_F(Resume, ARunIsNotOverwritten) {
  Words words = training(path("run"), 1, 3);
  run(words);
  words.erase(std::find(words.begin(), words.end(), "--resume"));
  EXPECT_THAT(run(words, 2)->error(), HasSubstr("holds a run of 3 steps; --resume continues it"));
  EXPECT_EQ(expect_whole("run"), 3);
}

TEST_F(Resume, OnlyAsTheRunThatItWas) {
  run(training(path("run"), 1, 3));
  Words words = training(path("run"), 1, 6);
  words.insert(words.end(), {"--learning-rate", "0.5", "--gradients", "bf16"});
  EXPECT_THAT(run(words, 2)->error(), testing::AllOf(HasSubstr("learning_rate: 0.001 -> 0.5"),
                                                     HasSubstr("gradient_dtype: nothing -> bf16")));
  words = training(path("run"), 2, 6);
  *std::find(words.begin(), words.end(), "transformer") = "mlp";
  EXPECT_THAT(error_after(words, 2), HasSubstr("data: other samples than before"));
  EXPECT_FALSE(std::filesystem::exists(path("run") + "/profile-2.json")) << "measured in vain";
  EXPECT_EQ(expect_whole("run"), 3);
}

// Every option had to be given again.
TEST_F(Resume, HasTheOptionsOfTheRun) {
  run(training(path("run"), 2, 3));
  const Words words = {"train", "--run", path("run"), "--resume"};
  Words more = words;
  more.insert(more.end(), {"--steps", "6", "--ranks", "1"});
  EXPECT_THAT(run(more)->error(), HasSubstr("changed options: --ranks 2 -> 1, --steps 3 -> 6"));
  EXPECT_EQ(expect_whole("run"), 6);
  run(words);
  EXPECT_EQ(expect_whole("run"), 6);
  more = words;
  more.insert(more.end(), {"--seed", "4"});
  EXPECT_THAT(run(more, 2)->error(), HasSubstr("seed: 0 -> 4"));
}

TEST_F(Resume, NotBackwards) {
  run(training(path("run"), 1, 6));
  EXPECT_THAT(run(training(path("run"), 1, 3), 2)->error(),
              HasSubstr("has done 6 steps and --steps asks for 3"));
  run(training(path("run"), 1, 6));  // nothing left to do
  EXPECT_THAT(text_of(path("run") + "/run.json"), testing::Not(HasSubstr("plan-2.json")));
}

// A kill between the two files of a measurement leaves a topology alone.
TEST_F(Resume, MeasuresAgainWhatIsNotWhole) {
  run(training(path("run"), 1, 3));
  std::filesystem::copy(path("run") + "/topology-1.json", path("run") + "/topology-2.json");
  run(training(path("run"), 2, 6));
  EXPECT_EQ(profile::load(path("run") + "/profile-2.json").num_busy_ranks, 2);
}

TEST_F(Resume, MeasuresAgainWhatIsOfOtherRanks) {
  run(training(path("run"), 2, 3));
  for (const std::string file : {"/profile-", "/topology-"}) {
    std::filesystem::copy(path("run") + file + "2.json", path("run") + file + "1.json");
  }
  run(training(path("run"), 1, 6));
  EXPECT_EQ(profile::load(path("run") + "/profile-1.json").num_busy_ranks, 1);
  EXPECT_EQ(expect_whole("run"), 6);
}

TEST_F(Resume, ARenamedCheckpointIsNotItsStep) {
  run(training(path("run"), 1, 3));
  std::filesystem::rename(checkpoints("run").published(3), checkpoints("run").published(5));
  EXPECT_THAT(run(training(path("run"), 1, 9), 1)->error(),
              HasSubstr("the checkpoint of step 5 says that it is of step 3"));
}

TEST_F(Resume, SaysThatSamplesAreFew) {
  Words words = training(path("run"), 1, 1);
  *std::find(words.begin(), words.end(), "8") = "512";
  EXPECT_THAT(run(words)->error(), HasSubstr("samples, fewer than a batch of 512"));
}

TEST_F(Resume, OneTrainsAtATime) {
  const auto first = start(training(path("run"), 1, 1'000'000));
  wait_until([this] { return checkpoints("run").newest().has_value(); }, "a checkpoint");
  const auto begin = Clock::now();
  EXPECT_THAT(run(training(path("run"), 1, 3), 1)->error(), HasSubstr("another process trains in"));
  EXPECT_LT(Clock::now() - begin, 8s) << "it waited for one that does not end";
  // Nor does it help to remove the file that is locked.
  std::filesystem::remove(path("run") + "/lock");
  EXPECT_THAT(run(training(path("run"), 2, 3), 1)->error(), HasSubstr("another process trains in"));
  EXPECT_EQ(errors(), "") << "ranks were started";
}

// It trained on, and exited with 0; half of the run was nowhere.
TEST_F(Resume, AFolderThatIsRemovedEndsTheRun) {
  const auto process = start(training(path("run"), 1, 1'000'000));
  wait_for_steps(1);
  std::filesystem::rename(path("run"), path("elsewhere"));
  EXPECT_EQ(process->wait(), 1);
  EXPECT_THAT(process->error(), HasSubstr("was removed or replaced while it trains"));
}

// Which they are is known after a kill, too.
TEST_F(Resume, TheBestCheckpointsStay) {
  const auto words = [this](int steps) {
    Words words = training(path("run"), 2, steps);
    words.insert(words.end(), {"--evaluate-every", "2", "--keep-last", "1", "--keep-best", "2",
                               "--learning-rate", "0.1"});
    return words;
  };
  run(words(7));
  const auto end = run(words(12));
  std::map<double, std::int64_t> by_loss;
  for (const std::string& line : lines_of(text_of(path("run") + "/metrics.jsonl"))) {
    const Json json = Json::parse(line);
    if (!json.contains("evaluation") || json["step"] == 0) continue;
    by_loss[json["evaluation"]["loss"].get<double>()] = json["step"].get<std::int64_t>();
  }
  ASSERT_GE(by_loss.size(), 5U);
  const std::int64_t best = by_loss.begin()->second, next = std::next(by_loss.begin())->second;
  const std::set<std::int64_t> expected = {best, next, 12};
  const auto steps = checkpoints("run").steps();
  EXPECT_EQ(std::set<std::int64_t>(steps.begin(), steps.end()), expected);
  EXPECT_THAT(end->out(), HasSubstr("best_checkpoint  " + path("run") + "/checkpoints/step-" +
                                    std::to_string(best) + "\n"));
  EXPECT_THAT(run({"show", path("run") + "/best.json"})->out(),
              HasSubstr("checkpoint of step " + std::to_string(best) + ": "));
  Words other = words(14);
  other.insert(other.end(), {"--best-by", "accuracy"});
  EXPECT_THAT(error_after(other, 2), HasSubstr("--best-by accuracy: evaluations have loss"));
}

TEST_F(Resume, NotFromDamagedFiles) {
  run(training(path("run"), 2, 6));
  const auto newest = checkpoints("run").published(6);
  const std::string name = checkpoint::load(newest / "index.json").contents.files.back().name;
  const auto file = newest / name;
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_THAT(
      error_after(training(path("run"), 2, 9), 0),
      testing::AllOf(HasSubstr(name + "' is not the file that the checkpoint was written with"),
                     HasSubstr("set aside as step-6.damaged"), HasSubstr("of step 3")));
  EXPECT_EQ(expect_whole("run"), 9);
  EXPECT_EQ(checkpoints("run").steps(), (std::vector<std::int64_t>{3, 6, 9}));
  // None that is whole.
  for (const int step : {3, 6, 9}) {
    const auto index = checkpoints("run").published(step) / "index.json";
    std::string text = text_of(index);
    const std::string field = "\"step\": " + std::to_string(step);
    text.replace(text.find(field), field.size(), "\"step\": 5");
    std::ofstream(index) << text;
  }
  EXPECT_THAT(run(training(path("run"), 1, 12), 1)->error(), HasSubstr("sha256"));
  EXPECT_EQ(checkpoints("run").steps().size(), 3U);
}

TEST_F(Resume, ADamagedRunFileOrProfileSaysWhatToDo) {
  run(training(path("run"), 1, 3));
  std::ofstream(path("run") + "/profile-1.json") << "{";
  EXPECT_THAT(error_after(training(path("run"), 1, 6), 0), HasSubstr("measured anew"));
  std::ofstream(path("run") + "/run.json") << "{";
  EXPECT_THAT(error_after(training(path("run"), 1, 9)), HasSubstr("remove it to resume"));
  std::filesystem::remove(path("run") + "/run.json");
  run(training(path("run"), 1, 9));
  EXPECT_EQ(expect_whole("run"), 9);
}

// A run whose plan copied nodes could not go on under a plan of its own.
TEST_F(Resume, KeepsTheCopiesThatTheRunBeganWith) {
  Words words = training(path("run"), 2, 3);
  words.insert(words.end(),
               {"--cut-at", "blocks.1.norm1/layer_norm", "--copy", "bias/embedding,bias/permute"});
  run(words);
  EXPECT_THAT(text_of(path("run") + "/plan-1.json"), HasSubstr("copied_nodes"));
  for (const int ranks : {1, 2}) {
    run(training(path("run"), ranks, 3 * ranks + 3));
    const std::string plan = "/plan-" + std::to_string(ranks + 1) + ".json";
    EXPECT_THAT(text_of(path("run") + plan), HasSubstr("copied_nodes")) << ranks;
  }
  EXPECT_EQ(expect_whole("run"), 9);
}

// NaN trained on with exit code 0, and all checkpoints that were kept came later.
TEST_F(Resume, ANumberThatIsNotFiniteEndsTheRun) {
  run(training(path("run"), 1, 6));
  Words words = training(path("diverged"), 2, 20);
  words.insert(words.end(), {"--learning-rate", "1e38", "--optimizer", "sgd"});
  *std::find(words.begin(), words.end(), "--clip-norm") = "--weight-decay";
  EXPECT_THAT(error_after(words, 1), HasSubstr("in step 1: the training ends here"));
  EXPECT_EQ(expect_whole("diverged"), 0);
  Words again = words;
  again.insert(again.end(), {"--restarts", "9"});
  EXPECT_THAT(error_after(again, 1), HasSubstr("it ended again where it had ended before"));
  words.push_back("--allow-nonfinite");
  EXPECT_THAT(error_after(words, 0), HasSubstr("as --allow-nonfinite says"));
}

TEST_F(Resume, ByItselfWhereARankIsLost) {
  Words words = saving(training(path("run"), 2, 30), "weights");
  words.insert(words.end(), {"--restarts", "1"});
  const auto process = start(words);
  const pid_t victim = wait_for_event("start", 1);
  wait_for_steps(8);
  kill_process(victim);
  EXPECT_EQ(process->wait(), 0) << process->error() << errors();
  EXPECT_THAT(process->error(), HasSubstr("0 restarts left"));
  EXPECT_EQ(expect_whole("run"), 30);
  run(saving(training(path("undisturbed"), 2, 30), "expected"));
  EXPECT_TRUE(text_of(path("weights")) == text_of(path("expected")));
}

// The difference of two seeds was reported as other data.
TEST_F(Resume, AnotherSeedIsSaidToBeOne) {
  run(training(path("run"), 1, 3));
  Words words = training(path("run"), 1, 6);
  words.insert(words.begin(), {"--seed", "5"});
  EXPECT_THAT(run(words, 2)->error(),
              testing::AllOf(HasSubstr("seed: 0 -> 5"), testing::Not(HasSubstr("data:"))));
}

TEST_F(Resume, AFullDiskLeavesTheLastCheckpoint) {
  run(training(path("sample"), 2, 3));
  std::uintmax_t others = 0, one = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("sample"))) {
    const std::uintmax_t bytes = entry.is_regular_file() ? entry.file_size() + 4096 : 4096;
    (entry.path().string().find("/step-") == std::string::npos ? others : one) += bytes;
  }
  std::filesystem::create_directory(path("run"));
  const trireme::test::SmallDisk disk(path("run"), std::to_string(others + one + one / 2));
  if (!disk.is_there()) GTEST_SKIP() << "mounting a small disk needs root";
  EXPECT_THAT(error_after(training(path("run"), 2, 1000)), HasSubstr("No space left on device"));
  EXPECT_EQ(expect_whole("run"), 3);
  Words words = training(path("run"), 2, 9);
  words.insert(words.end(), {"--checkpoint-errors", "continue"});
  EXPECT_THAT(error_after(words, 0),
              testing::AllOf(HasSubstr("no checkpoint could be written, and the training goes on"),
                             HasSubstr("No space left on device")));
  EXPECT_EQ(expect_whole("run"), 3);
  ASSERT_TRUE(disk.resize("100m"));
  run(training(path("run"), 2, 9));
  EXPECT_EQ(expect_whole("run"), 9);
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_THAT(error_after(training(path("run"), 2, 12)), HasSubstr("Read-only file system"));
  EXPECT_EQ(expect_whole("run"), 9);
}

}  // namespace
}  // namespace trireme::command::test
