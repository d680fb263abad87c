#include "trireme/plan/simulate/shared_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/plans/chain_model.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::simulate {
namespace {

using Load = SharedLinks::Load;
using Transfer = SharedLinks::Transfer;

/// When each queue's transfers are done: all of them are added at time 0.
std::map<int, std::vector<double>> play(SharedLinks links,
                                        const std::vector<std::pair<int, Transfer>>& transfers) {
  for (const auto& [queue, transfer] : transfers) links.add(queue, transfer, 0);
  std::map<int, std::vector<double>> done;
  while (links.next_us() < SharedLinks::kNever) {
    const double now = links.next_us();
    for (const int queue : links.take_done(now)) done[queue].push_back(now);
  }
  return done;
}

using Times = std::map<int, std::vector<double>>;

TEST(SharedLinks, OneAloneTakesWhatItTakesAlone) {
  EXPECT_EQ(play({{1}, 1}, {{0, {10, {{0, 10}}}}}), (Times{{0, {10}}}));
  EXPECT_EQ(play({{1}, 1}, {{0, {30, {{0, 10}}}}}), (Times{{0, {30}}}));  // Slow by itself.
  EXPECT_EQ(play({{0.5}, 1}, {{0, {10, {{0, 10}}}}}), (Times{{0, {20}}}));
}

TEST(SharedLinks, TwoEqualOnesTakeTwiceAsLong) {
  EXPECT_EQ(play({{1}, 2}, {{0, {10, {{0, 10}}}}, {1, {10, {{0, 10}}}}}),
            (Times{{0, {20}}, {1, {20}}}));
  // A link of twice the bandwidth has room for both.
  EXPECT_EQ(play({{2}, 2}, {{0, {10, {{0, 10}}}}, {1, {10, {{0, 10}}}}}),
            (Times{{0, {10}}, {1, {10}}}));
  // Directions are links of their own.
  EXPECT_EQ(play({{1, 1}, 2}, {{0, {10, {{0, 10}}}}, {1, {10, {{1, 10}}}}}),
            (Times{{0, {10}}, {1, {10}}}));
}

/// The smaller a takes 2a, the larger b then a + b: what both are together.
TEST(SharedLinks, TheLargerOneHasTheLinkOnceTheSmallerIsDone) {
  EXPECT_EQ(play({{1}, 2}, {{0, {4, {{0, 4}}}}, {1, {12, {{0, 12}}}}}),
            (Times{{0, {8}}, {1, {16}}}));
}

/// What one leaves, because it is slow by itself, is the others'.
TEST(SharedLinks, WhoIsSlowByItselfHoldsBackLess) {
  const Times times = play({{1}, 2}, {{0, {16, {{0, 4}}}}, {1, {6, {{0, 6}}}}});
  EXPECT_EQ(times, (Times{{0, {16}}, {1, {8}}}));  // A quarter of the link, and three quarters.
}

/// x over both links, y and z over one each: all have a half; with z half as much, y and x keep theirs.
TEST(SharedLinks, ThreeOverTwoLinks) {
  const Transfer both{8, {{0, 8}, {1, 8}}}, first{8, {{0, 8}}}, second{4, {{1, 4}}};
  EXPECT_EQ(play({{1, 1}, 3}, {{0, both}, {1, first}, {2, {8, {{1, 8}}}}}),
            (Times{{0, {16}}, {1, {16}}, {2, {16}}}));
  EXPECT_EQ(play({{1, 1}, 3}, {{0, both}, {1, first}, {2, second}}),
            (Times{{0, {16}}, {1, {16}}, {2, {8}}}));
  // A second link of twice the bandwidth: z goes alone, beside the half of x.
  EXPECT_EQ(play({{1, 2}, 3}, {{0, both}, {1, first}, {2, second}}),
            (Times{{0, {16}}, {1, {16}}, {2, {4}}}));
}

TEST(SharedLinks, TransfersOfAQueueFollowEachOther) {
  EXPECT_EQ(play({{1}, 2}, {{0, {4, {{0, 4}}}}, {0, {4, {{0, 4}}}}, {1, {8, {{0, 8}}}}}),
            (Times{{0, {8, 16}}, {1, {16}}}));
}

/// A link is never idle while something waits for it alone: n transfers of any size take their sum.
TEST(SharedLinks, TheLastIsDoneWhenAllBytesHavePassed) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int, Transfer>> transfers;
    double sum = 0;
    const int num = 1 + static_cast<int>(random() % 9);
    for (int t = 0; t < num; ++t) {
      const double bytes = 1 + static_cast<double>(random() % 1000);
      transfers.push_back({t, {bytes / 3, {{0, bytes}}}});
      sum += bytes;
    }
    double last = 0;
    for (const auto& [queue, times] : play({{3}, num}, transfers)) last = std::max(last, times[0]);
    EXPECT_NEAR(last, sum / 3, 1e-9 * sum) << round;
  }
}

/// Rates are rounded, so that what is left of a transfer may come out below 0 where others end at the same time.
TEST(SharedLinks, TimeNeverStepsBack) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    SharedLinks links({3, 7, 1.0 / 3}, 8);
    double now = 0;
    for (int event = 0; event < 60; ++event) {
      const auto bytes = [&] { return static_cast<double>(1 + random() % 3) / 3; };
      const double size = bytes();
      Transfer transfer{bytes() / 7, {{static_cast<int>(random() % 3), size}}};
      if (random() % 2 == 0) transfer.loads.push_back({static_cast<int>(random() % 3), size});
      links.add(static_cast<int>(random() % 8), std::move(transfer), now);
      ASSERT_GE(links.next_us(), now) << round << " " << event;
      if (random() % 3 == 0) continue;
      now = links.next_us();
      ASSERT_FALSE(links.take_done(now).empty()) << round << " " << event;
      ASSERT_GE(links.next_us(), now) << round << " " << event;
    }
  }
}

/// When transfers that all begin at 0 are done: their levels rise together in small steps, each until it is as fast as alone or
/// passes a full link. Slow, and by the definition alone.
std::vector<double> done_by_small_steps(const std::vector<double>& links,
                                        const std::vector<Transfer>& transfers) {
  std::vector<double> left(transfers.size(), 1), done(transfers.size());
  const auto most = [](const Transfer& transfer) {
    double bytes = 0;
    for (const Load& load : transfer.loads) bytes = std::max(bytes, load.bytes);
    return bytes;
  };
  double now = 0;
  while (std::ranges::any_of(left, [](double part) { return part > 0; })) {
    std::vector<double> rates(transfers.size()), used(links.size());
    for (double level = 0, step = 1e-4; level < 10; level += step) {
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        const double more = step / most(transfers[t]);
        const bool has_room = std::ranges::all_of(transfers[t].loads, [&](const Load& load) {
          return used[load.link] + more * load.bytes <= links[load.link];
        });
        if (left[t] <= 0 || !has_room || rates[t] + more > 1 / transfers[t].alone_us) continue;
        rates[t] += more;
        for (const Load& load : transfers[t].loads) used[load.link] += more * load.bytes;
      }
    }
    double next = SharedLinks::kNever;
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      if (left[t] > 0) next = std::min(next, left[t] / rates[t]);
    }
    now += next;
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      if (left[t] <= 0) continue;
      left[t] -= next * rates[t];
      if (left[t] < 1e-9) left[t] = 0, done[t] = now;
    }
  }
  return done;
}

TEST(SharedLinks, AreFairByTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    const std::vector<double> bytes_per_us = {1, 2, 1.5};
    std::vector<Transfer> transfers;
    std::vector<std::pair<int, Transfer>> queued;
    for (int t = 0; t < 5; ++t) {
      const auto bytes = [&] { return static_cast<double>(1 + random() % 4); };
      const int first = static_cast<int>(random() % 3);
      Transfer transfer{bytes() / 3, {{first, bytes()}}};
      if (random() % 2 == 0) transfer.loads.push_back({(first + 1) % 3, bytes()});
      queued.push_back({t, transfer});
      transfers.push_back(std::move(transfer));
    }
    const std::vector<double> expected = done_by_small_steps(bytes_per_us, transfers);
    for (const auto& [queue, done] : play(SharedLinks(bytes_per_us, 5), queued)) {
      EXPECT_NEAR(done.at(0), expected[queue], 0.01 * expected[queue]) << round << " " << queue;
    }
  }
}

/// Two pipelines of two stages; stage 0 of both is on one host, stage 1 on the other.
struct TwoPipelines {
  layout::testing::Model model =
      layout::testing::make_chain(std::vector<layout::testing::ChainNode>(2));
  layout::Plan plan = layout::testing::make_plan(model.graph, {{1}, 4, 2, "simple"});
  topology::Topology topology = layout::testing::make_topology(4);
  layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);

  TwoPipelines() {
    topology.hosts.push_back(topology.hosts[0]);
    topology.hosts[1].name = "another";
    topology.ranks[2].host = topology.ranks[3].host = 1;
    model.profile.links[1].times = {{4, 5, 5}};  // Between hosts.
  }

  Simulation play() const {
    return forecast({model.graph, plan, map, model.profile, topology}).simulation;
  }
};

TEST(SharedLinks, MessagesOfTwoPipelinesShareACard) {
  TwoPipelines two;
  const Simulation alone = two.play();
  const auto first_message = [](const Simulation& step) {
    for (const ChannelTimes& times : step.channels) {
      if (!times.arrived_us.empty()) return times.arrived_us[0] - times.posted_us[0];
    }
    return 0.0;
  };
  two.topology.shared_links = {{"card", {0, 1}, 1e6}};
  EXPECT_NEAR(two.play().step_us, alone.step_us, 1e-9);  // Room for all.
  EXPECT_NEAR(first_message(two.play()), first_message(alone), 1e-9);
  // A message of 4 bytes takes 5 us alone; there is room for one of the two that go at once.
  two.topology.shared_links[0].gb_per_s = 0.8e-3;
  EXPECT_NEAR(first_message(two.play()), 2 * first_message(alone), 1e-9);
  EXPECT_GT(two.play().step_us, alone.step_us);
  two.model.profile.links[1].times = {{4, 0, 0}};
  EXPECT_NEAR(first_message(two.play()), 10, 1e-9) << "8 bytes of 0.8 per microsecond";
  two.model.profile.links[1].times = {{4, 5, 5}};
  two.topology.shared_links[0].passing = topology::Passing::kHost;
  EXPECT_EQ(two.play().step_us, alone.step_us);  // Nothing within hosts passes it.
  two.topology.shared_links = {{"all", {0, 1, 2, 3}, 1e-6}};
  EXPECT_EQ(two.play().step_us, alone.step_us);  // Nobody is on its other side.
}

}  // namespace
}  // namespace trireme::simulate
