// Kill -9 of any rank at any time: all others end soon, with a message that names it.

#include "tests/command/rank_processes.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
const Words kThreeStages = {"--model",      "gated", "train",    "--batch", "8",
                            "--microbatch", "2",     "--stages", "3"};
const Words kEndlessTraining = [] {
  Words words = kThreeStages;
  words.insert(words.end(), {"--steps", "100000000", "--metrics"});
  return words;
}();

std::string stop_at(const std::string& phase, int rank) {
  return phase + ":" + std::to_string(rank);
}

class RankKill : public RankTest {
 protected:
  void expect_others_name(int victim) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      // The latter from the store, where a rank was still about to connect.
      EXPECT_THAT(
          error_of(rank),
          testing::AnyOf(HasSubstr("rank " + std::to_string(victim) + " is lost"),
                         HasSubstr("(rank " + std::to_string(victim) + " or the launcher)")))
          << "victim " << victim;
    }
  }

  /// Kills the process of a rank: the launcher ends within `time`, and so has everyone before it.
  void expect_end(Process& launcher, pid_t process, int victim,
                  std::chrono::milliseconds time = soon()) {
    ASSERT_GT(process, 0);
    kill_process(process);
    const int code = launcher.wait(time);
    EXPECT_EQ(code, 1);
    expect_others_name(victim);
    EXPECT_THAT(launcher.error(), HasSubstr("rank " + std::to_string(victim) + " failed"));
  }

  void wait_for_steps() {
    wait_until([this] { return lines_of(text_of(path("metrics"))).size() > 3; }, "steps");
  }
};

class RankKillPhase : public RankKill,
                      public testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(RankKillPhase, EndsAllOthers) {
  const auto [phase, victim] = GetParam();
  Words words = kThreeStages;
  words.insert(words.end(), {"--steps", "2"});
  const auto launcher = start(words, {{"RANK_TEST_STOP", stop_at(phase, victim)}});
  expect_end(*launcher, wait_for_event("stop", victim), victim);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, RankKillPhase,
                         testing::Combine(testing::Values("start", "construct", "record",
                                                          "evaluate"),
                                          testing::Range(0, kRanks)));

// Killed in an operator, where the others measure it too or wait for the next message.
TEST_F(RankKill, WhileRanksMeasureOrVerify) {
  const Words profile = {"--model", "gated",         "profile",    "--ranks",       "3",
                         "--out",   path("profile"), "--topology", path("topology")};
  Words verify = kThreeStages;
  verify[2] = "verify";
  for (const Words& words : {profile, verify}) {
    SetUp();
    const auto launcher = start(words, {{"RANK_TEST_STOP", "forward:1"}});
    expect_end(*launcher, wait_for_event("stop", 1), 1);
  }
}

TEST_F(RankKill, WhileStepsAreRun) {
  for (int victim = 0; victim < kRanks; ++victim) {
    SetUp();
    Words words = kEndlessTraining;
    words.push_back(path("metrics"));
    const auto launcher = start(words);
    wait_for_steps();
    expect_end(*launcher, wait_for_event("start", victim), victim);
  }
}

// All others have ended well by then.
TEST_F(RankKill, AfterItsGoodbyeFailsTheRun) {
  Words words = kThreeStages;
  words.insert(words.end(), {"--steps", "2"});
  const auto launcher = start(words, {{"RANK_TEST_STOP", "exit:1"}});
  kill_process(wait_for_event("stop", 1));
  EXPECT_EQ(launcher->wait(), 1);
  EXPECT_EQ(error_of(0) + error_of(2), "");
}

// A rank in an operator that does not return cannot throw: it is ended 1 s after the world.
TEST_F(RankKill, EndsARankThatIsStuckInAnOperator) {
  const auto launcher = start(kThreeStages, {{"RANK_TEST_STOP", "forward:2"}});
  wait_for_event("stop", 2);
  expect_end(*launcher, wait_for_event("start", 1), 1, 3s);
}

/// Not if it has ended and whoever inherited it has not asked how.
bool is_running(pid_t process) {
  const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

TEST_F(RankKill, TheLauncherTakesItsRanksAlong) {
  const auto launcher = start(kThreeStages, {{"RANK_TEST_STOP", "forward:0 forward:1 forward:2"}});
  wait_for_event("stop", 0);
  launcher->kill();
  launcher->wait();
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t process = wait_for_event("start", rank);
    ASSERT_GT(process, 1);
    wait_until([process] { return !is_running(process); }, "the end of a rank");
  }
}

// On a loaded machine the launcher looks when the others have ended too; it named the lowest rank.
TEST_F(RankKill, IsToldFromWhatFollows) {
  Words words = kEndlessTraining;
  words.push_back(path("metrics"));
  const auto launcher = start(words);
  wait_for_steps();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(wait_for_event("start", rank));
  launcher->stop();
  kill_process(ranks[2]);
  for (const pid_t process : ranks) {
    ASSERT_GT(process, 1);
    wait_until([process] { return !is_running(process); }, "the end of a rank");
  }
  launcher->go_on();
  EXPECT_EQ(launcher->wait(), 1);
  EXPECT_THAT(launcher->error(), HasSubstr("rank 2 failed: its process was ended by signal 9"));
}

class RankKillByHand : public RankKill {
 protected:
  void expect_end(std::vector<std::unique_ptr<Process>>& ranks, int victim) {
    const auto killed_at = Clock::now();
    ranks[victim]->kill();
    for (const auto& rank : ranks) EXPECT_NE(rank->wait(soon()), 0);
    EXPECT_LT(Clock::now() - killed_at, soon());
    expect_others_name(victim);
  }
};

TEST_F(RankKillByHand, EveryRankInEveryPhase) {
  for (const std::string phase : {"construct", "forward", "evaluate"}) {
    for (const int victim : {0, 2}) {
      SetUp();
      Words words = kThreeStages;
      words.insert(words.end(), {"--steps", "2"});
      auto ranks = start_by_hand(words, kRanks, free_port(), {},
                                 {{"RANK_TEST_STOP", stop_at(phase, victim)}});
      wait_for_event("stop", victim);
      expect_end(ranks, victim);
    }
  }
}

/// Connections to a port of this host.
int num_connections(int port) {
  std::ostringstream wanted;
  wanted << "0100007F:" << std::uppercase << std::hex;
  wanted.width(4);
  wanted.fill('0');
  wanted << port;
  int result = 0;
  for (const std::string& line : lines_of(text_of("/proc/net/tcp"))) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    if (local == wanted.str() && state == "01") ++result;
  }
  return result;
}

// It serves the store, in which the others wait for rank 2.
TEST_F(RankKillByHand, TheRankThatServesTheStore) {
  const int port = free_port();
  auto ranks = start_by_hand(kThreeStages, kRanks, port, {}, {{"RANK_TEST_STOP", "start:2"}});
  wait_for_event("stop", 2);
  wait_until([port] { return num_connections(port) == 2; }, "ranks 0 and 1 in the store");
  // Until rank 1 has proved its token it would take the end for a store that is yet to come.
  std::this_thread::sleep_for(500ms);
  const auto killed_at = Clock::now();
  ranks[0]->kill();
  EXPECT_EQ(ranks[1]->wait(soon()), 1);
  EXPECT_LT(Clock::now() - killed_at, soon());
  EXPECT_THAT(error_of(1), HasSubstr("rank 0"));
}

}  // namespace
}  // namespace trireme::command::test
