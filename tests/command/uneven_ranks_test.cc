// Stages with different numbers of ranks: processes over tcp.

#include "tests/command/rank_processes.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::command::test {
namespace {

using testing::HasSubstr;

/// A profile in which the first node takes two thirds of the time.
void make_first_node_heavy(const std::string& file) {
  profile::Profile profile = profile::load(file);
  const double others_us = 30e3 / static_cast<double>(profile.costs.size() - 1);
  for (profile::NodeCost& cost : profile.costs) {
    const double us = &cost == profile.costs.data() ? 20e3 : others_us / 3;
    cost.forward_us = cost.input_us = cost.weight_us = us;
  }
  profile.ranges.clear();
  profile::save(profile, file);
}

/// A topology in which each rank has a core.
void give_each_a_core(const std::string& file) {
  topology::Topology topology = topology::load(file);
  topology.hosts[0].num_cores = static_cast<int>(topology.ranks.size());
  for (int rank = 0; rank < topology.hosts[0].num_cores; ++rank) {
    topology.ranks[rank].cores = {rank};
    topology.ranks[rank].speed = 1;
  }
  topology::save(topology, file);
}

// From costs to weights with two ranks for the first stage and one for the second, and on from its checkpoint elsewhere.
TEST_F(RankTest, AStageWithMoreRanksIsPlannedAndTrained) {
  const Words model = {"--model", "mlp"};
  run(with(model, {"record", "--out", folder}));
  run(with(model, {"profile", "--ranks", "3", "--microbatch", "2", "--out", path("profile.json"),
                   "--topology", path("topology.json")}));
  make_first_node_heavy(path("profile.json"));
  give_each_a_core(path("topology.json"));
  const auto planned = [&](const Words& more) {
    return run(
        with(with(model, {"partition", "--graph", path("train.graph.json"), "--profile",
                          path("profile.json"), "--topology", path("topology.json"), "--batch",
                          "16", "--lanes", "2", "--no-copies", "--out", path("plan.json")}),
             more));
  };
  planned({"--even-replicas"});
  EXPECT_TRUE(layout::load(path("plan.json")).roles[0].is_even());
  EXPECT_THAT(planned({})->out(), HasSubstr("2 stages x 2 replicas, on 2 + 1 ranks"));
  EXPECT_EQ(layout::load(path("plan.json")).roles[0].placement, (std::vector<int>{0, 1, 2, 2}));
  EXPECT_THAT(run(with(model, {"show", path("plan.json")}))->out(), HasSubstr("0 1 2 2"));
  const Words train = with(model, {"train", "--plan", path("plan.json"), "--clip-norm", "0.5"});
  const auto serial = run(with(train, {"--serial", "--steps", "4", "--save", path("serial")}));
  const auto ranks = run(with(train, {"--run", path("run"), "--checkpoint-every", "2", "--steps",
                                      "4", "--save", path("ranks")}));
  ASSERT_FALSE(text_of(path("serial")).empty());
  EXPECT_TRUE(text_of(path("serial")) == text_of(path("ranks")));
  EXPECT_EQ(evaluation_in(serial->out()), evaluation_in(ranks->out()));
  EXPECT_THAT(run(with(train, {"--ranks", "4"}), 2)->error(), HasSubstr("the plan is for 3 ranks"));
  std::filesystem::remove_all(path("run"));
  run(with(train, {"--run", path("run"), "--steps", "2"}));
  run(with(model, {"train", "--run", path("run"), "--resume", "--ranks", "2", "--batch", "16",
                   "--microbatch", "2", "--lanes", "2", "--clip-norm", "0.5", "--steps", "4",
                   "--save", path("elsewhere")}));
  EXPECT_TRUE(text_of(path("serial")) == text_of(path("elsewhere")));
}

}  // namespace
}  // namespace trireme::command::test
