// Plans with balances to compare with, nodes kept in stages, and a cap of active microbatches, trained.

#include "tests/command/rank_processes.h"
#include "trireme/plan/graph/graph_json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

/// A small model, recorded and profiled on two ranks.
class BalanceTest : public RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    run({"--model", "mlp", "record", "--out", folder});
    run({"--model", "mlp", "profile", "--ranks", "2", "--microbatch", "2", "--out",
         path("profile.json"), "--topology", path("topology.json")});
  }

  /// What `partition` says; the weights after two steps are in NAME.w.
  std::string trained(const std::string& name, const Words& options) {
    Words words = {"--model",
                   "mlp",
                   "partition",
                   "--graph",
                   path("train.graph.json"),
                   "--profile",
                   path("profile.json"),
                   "--topology",
                   path("topology.json"),
                   "--batch",
                   "8",
                   "--stages",
                   "2",
                   "--out",
                   path(name)};
    words.insert(words.end(), options.begin(), options.end());
    const auto planned = run(words);
    run({"--model", "mlp", "train", "--steps", "2", "--plan", path(name), "--save",
         path(name + ".w")});
    return planned->out();
  }
};

// One microbatch after another, or not: the same weights.
TEST_F(BalanceTest, CapsAndStagesOfNodesChangeNoWeights) {
  EXPECT_THAT(trained("capped", {"--balance", "uniform", "--active-microbatches", "1"}),
              HasSubstr("active_microbatches 1, cuts by balance uniform"));
  const std::string node = graph::load(path("train.graph.json")).nodes[1].name;
  trained("kept", {"--stage-of", node + "=1"});
  EXPECT_TRUE(text_of(path("capped.w")) == text_of(path("kept.w")));
}

}  // namespace
}  // namespace trireme::command::test
