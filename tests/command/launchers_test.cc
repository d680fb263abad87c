// Ranks that others than `train` start: by hand, and as torchrun does.

#include <array>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/command/rank_processes.h"
#include "trireme/base/environment.h"
#include "trireme/error.h"
#include "trireme/launch/local_ranks.h"
#include "trireme/wire/bootstrap/store.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

const Words kTwoStages = {"--model",      "gated", "train",    "--batch", "8",
                          "--microbatch", "2",     "--stages", "2"};

class Launchers : public RankTest {
 protected:
  /// Starts two ranks that differ in `own`: both refuse, with a message that has `what`.
  void expect_refusal(const std::vector<Words>& own, const std::string& what) {
    const auto ranks = start_by_hand(kTwoStages, 2, free_port(), own);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ranks[rank]->wait(), 2) << errors();
      EXPECT_THAT(error_of(rank), HasSubstr(what));
      EXPECT_THAT(error_of(rank), HasSubstr("rank 1"));
    }
  }
};

TEST_F(Launchers, RanksStartedByHandTrain) {
  Words serial = kTwoStages;
  serial.insert(serial.end(), {"--steps", "2", "--serial", "--save", path("serial")});
  run(serial);
  const auto ranks = start_by_hand(
      kTwoStages, 2, free_port(),
      {{"--steps", "2", "--save", path("ranks")}, {"--steps", "2", "--save", "ignored"}});
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << errors();
  EXPECT_TRUE(text_of(path("serial")) == text_of(path("ranks")));
}

TEST_F(Launchers, OptionsThatDifferAreNamed) {
  expect_refusal({{"--learning-rate", "0.5"}, {}},
                 "'learning_rate 0.001' and not 'learning_rate 0.5'");
  expect_refusal({{"--seed", "1"}, {"--seed", "2"}}, "'seed 2' and not 'seed 1'");
  expect_refusal({{"--steps", "3"}, {"--steps", "4"}}, "'steps 4' and not 'steps 3'");
  expect_refusal({{"--save", path("w")}, {}}, "save false");
  expect_refusal({{"--timeline", path("t")}, {}}, "timeline false");
}

TEST_F(Launchers, PlansThatDifferAreNamed) {
  expect_refusal({{"--lanes", "1"}, {"--lanes", "2"}}, "plan");
  expect_refusal({{"--schedule", "simple"}, {"--schedule", "interleaved"}}, "plan");
}

TEST_F(Launchers, WorldsOfDifferentSizesAreNamed) {
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(start(kTwoStages, {{"RANK", std::to_string(rank)},
                                       {"WORLD_SIZE", std::to_string(rank + 2)},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(port)}}));
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank]->wait(), 2);
    EXPECT_THAT(error_of(rank),
                HasSubstr(rank == 0 ? "for a world of 3 ranks" : "for a world of 2 ranks"));
  }
}

// It did nothing.
TEST_F(Launchers, RestartsAreTheirOwn) {
  const auto ranks = start_by_hand(
      {"--model", "mlp", "train", "--run", path("run"), "--restarts", "2"}, 1, free_port());
  EXPECT_EQ(ranks[0]->wait(), 2);
  EXPECT_THAT(error_of(0), HasSubstr("--restarts is for ranks that this command starts"));
}

TEST_F(Launchers, APortInUseIsNamed) {
  const Descriptor taken = transport::listen_on({"127.0.0.1", 0});
  const std::string port = std::to_string(transport::local_address(taken).port);
  const auto rank = start(
      kTwoStages,
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  EXPECT_EQ(rank->wait(), 2);
  EXPECT_THAT(error_of(0), HasSubstr("127.0.0.1:" + port));
  EXPECT_THAT(error_of(0), HasSubstr("another program uses this port"));
}

/// Not a test of its own: what the ranks of the next one do.
TEST(LocalRanks, DISABLED_BodyOfARank) {
  const auto environment = read_environment().ranks;
  ASSERT_TRUE(environment.has_value());
  if (environment->rank == 1) return;
  const transport::Token token = transport::token_of_job(*environment, Logger(LogLevel::kWarning));
  transport::StoreClient store({environment->store_host, environment->store_port},
                               environment->rank, {}, token);
  try {
    store.get("key of rank 1", 60s);
    ADD_FAILURE() << "nobody sets it";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "rank 1 is lost: its process ended with exit code 0 before its goodbye");
  }
  store.shutdown();
}

// Rank 0 waited for it as long as it may.
TEST(LocalRanks, WhoEndsWellBeforeItsGoodbyeIsLost) {
  constexpr std::array kWords = {"ranks", "--gtest_filter=LocalRanks.DISABLED_BodyOfARank",
                                 "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
  EXPECT_EQ(launch::run_local_ranks(2, kWords), 0);
}

// torchrun serves a store for its ranks; they ask it where rank 0 serves ours.
TEST_F(Launchers, TorchrunsStoreIsUsed) {
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.port = 0;
  options.waitWorkers = false;
  const c10d::TCPStore agent("127.0.0.1", options);
  for (const char* attempt : {"0", "1"}) {
    const auto ranks = start_by_hand(
        kTwoStages, 2, agent.getPort(), {},
        {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", attempt}});
    for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << errors();
    EXPECT_THAT(ranks[0]->out(), HasSubstr("evaluation"));
    EXPECT_EQ(ranks[1]->out(), "");
  }
}

}  // namespace
}  // namespace trireme::command::test
