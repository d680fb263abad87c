#include "benchmarks/wire/compare.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/base/error_of.h"

namespace trireme::bench {
namespace {

using test::error_of;

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BenchAnswers, TheSlowestRankCounts) {
  Result result;
  const std::vector<Answer> first = {{.times_us = {1, 5}, .cpu_s = 1, .digest = "a"},
                                     {.times_us = {2, 4}, .cpu_s = 2, .wrong = 3, .digest = "b"}};
  const std::vector<Answer> second = {{.times_us = {9, 9}, .digest = "a"},
                                      {.times_us = {8, 8}, .digest = "a"}};
  add_answers(result, Collective::kAllReduce, first);
  add_answers(result, Collective::kAllReduce, second);
  EXPECT_THAT(result.times_us, ElementsAre(2, 5, 9, 9));
  EXPECT_EQ(result.cpu_s, 3);
  EXPECT_EQ(result.wrong, 3);
  EXPECT_EQ(result.differing_ranks, 1);
  EXPECT_EQ(result.p50_us(), 5);
  EXPECT_EQ(result.p95_us(), 9);
}

TEST(BenchAnswers, ABarrierIsLeftAfterTheLastHasEntered) {
  const auto wrong_of = [](double left_us) {
    Result result;
    const std::vector<Answer> answers = {{.times_us = {1}, .entered_us = 100, .left_us = left_us},
                                         {.times_us = {1}, .entered_us = 200, .left_us = 201}};
    add_answers(result, Collective::kBarrier, answers);
    return result.wrong;
  };
  EXPECT_EQ(wrong_of(202), 0);
  EXPECT_EQ(wrong_of(199), 1);
}

/// Contestants that are shell scripts: with the folder as $0 and the rank as $1.
class ScriptedContestant : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("trireme-bench-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<Contestant> start(const std::string& name, const std::string& script,
                                    int num_ranks) const {
    std::vector<Command> commands;
    for (int rank = 0; rank < num_ranks; ++rank) {
      commands.push_back(
          {{"sh", "-c", script, (folder / name).string(), std::to_string(rank)}, {"NAME=" + name}});
    }
    return std::make_unique<Contestant>(name, folder / name, num_ranks, commands);
  }

  /// Answers every order with the number of iterations as times, and notes who ran.
  std::string answering(double time_us = 7) const {
    const std::string answer = to_text(Answer{.times_us = {time_us}});
    return R"(exec 3>$0/answers.$1; while read -r line && [ "$line" != end ]; do echo "$NAME $line" >>)" +
           folder.string() + R"(/log; echo ')" + answer + R"(' >&3; done <$0/orders.$1)";
  }

  std::filesystem::path folder;
};

constexpr Case kCase{.operation = Collective::kAllReduce, .bytes = 256 << 20};

TEST_F(ScriptedContestant, CallsBesideASleepOfTwiceTheirTime) {
  Contestants contestants;
  contestants.push_back(start("a", answering(1500), 1));
  const auto results = compare(kCase, contestants, {.rounds = 1, .is_overlapped = true});
  contestants[0]->stop();
  EXPECT_THAT(results[0].exposed_us, ElementsAre(1500));
  std::ifstream file(folder / "log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(log, "a all_reduce 268435456 f32 4 2 0 0 0\na all_reduce 268435456 f32 4 1 0 3000 0\n");
}

TEST_F(ScriptedContestant, ThePassesOfOursAreTimedEachRound) {
  Contestants contestants;
  contestants.push_back(start("a", answering(30), 1));
  contestants.push_back(start("b", answering(), 1));
  const auto results = compare(kCase, contestants, {.rounds = 2, .is_bounded = true});
  for (const auto& contestant : contestants) contestant->stop();
  EXPECT_THAT(results[0].pass_us, ElementsAre(30, 30));
  EXPECT_THAT(results[1].pass_us, ElementsAre());
  EXPECT_EQ(results[0].wrong, 0);
  std::ifstream file(folder / "log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(log, HasSubstr("a all_reduce 268435456 f32 4 1 0 0 1\n"));
}

TEST_F(ScriptedContestant, WhatIsWrongBesidePassesCounts) {
  const std::string right = to_text(Answer{.times_us = {7}});
  const std::string wrong = to_text(Answer{.times_us = {7}, .wrong = 3});
  Contestants contestants;
  contestants.push_back(start("a",
                              R"(exec 3>$0/answers.$1; exec <$0/orders.$1; read -r line; echo ')" +
                                  right + R"(' >&3; read -r line; echo ')" + wrong +
                                  R"(' >&3; read -r line)",
                              1));
  const auto results = compare(kCase, contestants, {.rounds = 1, .is_bounded = true});
  contestants[0]->stop();
  EXPECT_EQ(results[0].wrong, 3);
}

TEST_F(ScriptedContestant, RoundsBeginWithAnother) {
  Contestants contestants;
  contestants.push_back(start("a", answering(), 1));
  contestants.push_back(start("b", answering(), 1));
  const auto results = compare(kCase, contestants, {.rounds = 3});
  for (const auto& contestant : contestants) contestant->stop();
  EXPECT_THAT(results[0].times_us, ElementsAre(7, 7, 7));
  EXPECT_THAT(results[1].times_us, ElementsAre(7, 7, 7));
  const std::string order = " all_reduce 268435456 f32 4 2 0 0 0\n";
  std::string expected;
  for (const char* name : {"a", "b", "b", "a", "a", "b"}) expected += name + order;
  std::string log;
  std::ifstream file(folder / "log");
  log.assign(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(log, expected);
}

TEST_F(ScriptedContestant, WhoDoesNotAnswerIsNamed) {
  const auto contestant = start("slow", "exec sleep 60", 2);
  const Error error =
      error_of([&] { contestant->run({.what = kCase}, std::chrono::milliseconds(50)); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("ranks 0, 1 of contestant slow"));
  EXPECT_THAT(error.what(), HasSubstr("all_reduce 268435456"));
}

TEST_F(ScriptedContestant, AProcessThatEndsIsNamed) {
  const auto contestant = start("weak", "read -r line <$0/orders.$1; exit 3", 1);
  const Error error = error_of([&] { contestant->run({.what = kCase}, std::chrono::seconds(20)); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("contestant weak has ended with exit code 3"));
}

TEST_F(ScriptedContestant, ABadEndIsNamed) {
  const auto contestant = start("bad", "read -r line <$0/orders.$1; exit 4", 1);
  const Error error = error_of([&] { contestant->stop(); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("exit code 4"));
}

TEST_F(ScriptedContestant, AMissingProgramIsNamed) {
  const std::vector<Command> commands = {{{folder / "nothing"}, {}}};
  Contestant contestant("none", folder / "none", 1, commands);
  const Error error = error_of([&] { contestant.run({.what = kCase}, std::chrono::seconds(20)); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("contestant none has ended with exit code 127"));
}

}  // namespace
}  // namespace trireme::bench
