#include "trireme/plan/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/predicted_timeline.h"

namespace trireme::simulate {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_plan;
using layout::testing::make_topology;
using layout::testing::Model;
using layout::testing::PlanShape;
using schedule::Operation;
using schedule::OperationKind;

Forecast forecast_of(const Model& model, const PlanShape& shape,
                     const topology::Topology& topology) {
  const layout::Plan plan = make_plan(model.graph, shape);
  const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
  return forecast({model.graph, plan, map, model.profile, topology});
}

std::vector<int> every_cut(int num_stages) {
  std::vector<int> cuts;
  for (int cut = 1; cut < num_stages; ++cut) cuts.push_back(cut);
  return cuts;
}

/// Step time with p equal stages, f = 1, b = 2.
double equal_stages(int p, int m, const std::string& schedule) {
  const Model model = make_chain(std::vector<ChainNode>(p));
  const Forecast result = forecast_of(model, {every_cut(p), m, 1, schedule}, make_topology(p));
  EXPECT_EQ(result.plan_bound_us, (m + p - 1) * 3.0);
  return result.simulation.step_us;
}

TEST(Simulate, EqualStagesTakeTheFormulasOfTheBubble) {
  for (const char* schedule : {"simple", "interleaved"}) {
    EXPECT_EQ(equal_stages(4, 8, schedule), 33);
    for (int p = 1; p <= 5; ++p) {
      for (const int m : {1, 2, 3, 8, 16}) {
        EXPECT_EQ(equal_stages(p, m, schedule), (m + p - 1) * 3.0) << schedule << p << m;
      }
    }
  }
}

/// Ranks with one operation of this work each.
Simulation works(const std::vector<double>& work, const topology::Topology& topology) {
  schedule::StepProgram program;
  Prices prices;
  for (const double w : work) {
    program.ranks.push_back({{.kind = OperationKind::kUpdate}});
    prices.push_back({{w, 0}});
  }
  return simulate(program, prices, topology);
}

TEST(Simulate, RanksOnOneCoreTakeTheSum) {
  const Simulation result = works({2, 3}, make_topology(2, 1));
  EXPECT_EQ(result.step_us, 5);
  EXPECT_EQ(result.events, (std::vector<SimulatedEvent>{{0, 0, 0, 4, 4}, {1, 0, 0, 5, 5}}));
  EXPECT_EQ(result.busy_us, (std::vector<double>{4, 5}));
}

TEST(Simulate, CoresAreSharedAmongThoseAtWork) {
  EXPECT_EQ(works({2, 3}, make_topology(2)).step_us, 3);
  EXPECT_EQ(works({2, 3}, make_topology(2, 2)).step_us, 3);
  // Three on two cores: 2/3 each until 3 (2 done each), then two at full speed until 5, one to 7.
  EXPECT_EQ(works({2, 4, 6}, make_topology(3, 2)).step_us, 7);
  EXPECT_EQ(works({}, make_topology(3, 2)).step_us, 0);
}

/// Works of 107 and 107 / 3 that end at one moment but for rounding: the one that is told later waits for no other event.
TEST(Simulate, RanksThatAreDoneAtOnceGoOnAtOnce) {
  schedule::StepProgram program;
  Prices prices;
  for (const double work : {214.0, 214.0, 107.0, 107.0 / 3}) {
    program.ranks.emplace_back(4, Operation{.kind = OperationKind::kUpdate});
    prices.emplace_back(4, Price{work, 0});
  }
  const Simulation result = simulate(program, prices, make_topology(4, 3));
  const auto first = std::ranges::find_if(result.events, [](const SimulatedEvent& event) {
    return event.rank == 2 && event.operation == 0;
  });
  EXPECT_NEAR(first->end_us, 107 / 0.75, 1e-9);
}

/// Rank 0 sends two messages, rank 1 takes them and works.
TEST(Simulate, MessagesOfAChannelFollowEachOtherAndBlockNoSender) {
  schedule::StepProgram program;
  program.channels = {{schedule::ChannelKind::kValue, 0, 1, 0, 1}};
  const Operation send{.kind = OperationKind::kSend, .channel = 0, .item = 0, .microbatch = 0};
  const Operation recv{.kind = OperationKind::kRecv, .channel = 0, .item = 0, .microbatch = 0};
  program.ranks = {{send, send, {.kind = OperationKind::kUpdate}},
                   {recv, recv, {.kind = OperationKind::kUpdate}}};
  const Prices prices = {{{1, 10}, {1, 10}, {1, 0}}, {{0, 0}, {0, 0}, {1, 0}}};
  const Simulation result = simulate(program, prices, make_topology(2));
  // Sent at 1 and 2, there at 11 and 21.
  EXPECT_EQ(result.events, (std::vector<SimulatedEvent>{{0, 0, 0, 1, 1},
                                                        {0, 1, 1, 2, 2},
                                                        {0, 2, 2, 3, 3},
                                                        {1, 0, 0, 0, 11},
                                                        {1, 1, 11, 11, 21},
                                                        {1, 2, 21, 22, 22}}));
  EXPECT_EQ(result.busy_us, (std::vector<double>{3, 1}));
}

/// Rank 0 makes a message each microsecond, rank 1 takes one in ten. With room for one beside the two
/// that are received ahead, rank 0 is three ahead at most.
TEST(Simulate, AChannelWithoutRoomStopsItsSender) {
  schedule::StepProgram program;
  program.channels = {{schedule::ChannelKind::kValue, 0, 1, 0, 1}};
  program.ranks.resize(2);
  Prices prices(2);
  for (int m = 0; m < 6; ++m) {
    program.ranks[0].push_back(
        {.kind = OperationKind::kSend, .channel = 0, .item = 0, .microbatch = m});
    program.ranks[1].push_back(
        {.kind = OperationKind::kRecv, .channel = 0, .item = 0, .microbatch = m});
    program.ranks[1].push_back({.kind = OperationKind::kUpdate});
    prices[0].push_back({1, 0});
    prices[1].insert(prices[1].end(), {{}, {10, 0}});
  }
  const auto end_of_last_send = [&] {
    double end = 0;
    for (const SimulatedEvent& event : simulate(program, prices, make_topology(2)).events) {
      if (event.rank == 0) end = std::max(end, event.end_us);
    }
    return end;
  };
  EXPECT_EQ(end_of_last_send(), 6);
  program.channels[0].limit = 1;
  EXPECT_EQ(end_of_last_send(), 21);  // when rank 1 takes the third
}

TEST(Simulate, AReduceRunsBesideComputeUntilItIsJoined) {
  schedule::StepProgram program;
  program.groups = {{schedule::GroupKind::kData, 0, {0, 1}}};
  const Operation reduce{.kind = OperationKind::kReduce, .group = 0, .item = 5};
  const Operation join{.kind = OperationKind::kJoin, .item = 5};
  const Operation work{.kind = OperationKind::kUpdate};
  program.ranks = {{work, reduce, work, join}, {work, reduce, work, join}};
  const Prices prices = {{{1, 0}, {0, 10}, {4, 0}, {0, 0}}, {{3, 0}, {0, 10}, {20, 0}, {0, 0}}};
  const Simulation result = simulate(program, prices, make_topology(2));
  // Both there at 3, the sum at 13: rank 0 waits for it, rank 1 works until 23.
  EXPECT_EQ(result.events.back(), (SimulatedEvent{1, 2, 3, 23, 23}));
  EXPECT_THAT(result.events, ::testing::Contains(SimulatedEvent{0, 3, 5, 5, 13}));
  EXPECT_EQ(result.step_us, 23);
}

TEST(Simulate, AGatherOfValuesRunsBesideComputeUntilItIsAwaited) {
  schedule::StepProgram program;
  program.groups = {{schedule::GroupKind::kData, 0, {0, 1}}};
  const Operation unshard{.kind = OperationKind::kUnshard, .group = 0, .item = 5};
  const Operation await{.kind = OperationKind::kAwait, .item = 5};
  const Operation work{.kind = OperationKind::kUpdate};
  program.ranks = {{work, unshard, work, await}, {work, unshard, work, await}};
  const Prices prices = {{{1, 0}, {0, 10}, {4, 0}, {0, 0}}, {{3, 0}, {0, 10}, {20, 0}, {0, 0}}};
  const Simulation result = simulate(program, prices, make_topology(2));
  // Both there at 3, the values at 13: rank 0 waits for them, rank 1 works until 23.
  EXPECT_THAT(result.events, ::testing::Contains(SimulatedEvent{0, 3, 5, 5, 13}));
  EXPECT_EQ(result.step_us, 23);
}

/// Replicas whose last backward of 10 completes one bucket at 4, another at 7: what the reductions
/// of 3 and 5 take beside it is not waited for.
TEST(Simulate, AReduceStartsInsideTheBackwardThatCompletesIt) {
  schedule::StepProgram program;
  program.groups = {{schedule::GroupKind::kData, 0, {0, 1}}};
  const auto reduce = [](int bucket) {
    return Operation{.kind = OperationKind::kReduce, .group = 0, .item = bucket};
  };
  const auto join = [](int bucket) {
    return Operation{.kind = OperationKind::kJoin, .item = bucket};
  };
  const std::vector<Operation> rank = {
      reduce(1), reduce(0), {.kind = OperationKind::kUpdate}, join(0), join(1)};
  program.ranks = {rank, rank};
  const auto step_us = [&](double second_us) {
    const std::vector<Price> prices = {{0, 3, 4}, {0, second_us, 7}, {10, 0}, {}, {}};
    return simulate(program, {prices, prices}, make_topology(2)).step_us;
  };
  EXPECT_EQ(step_us(3), 10);
  EXPECT_EQ(step_us(5), 12);  // 7 + 5; started after the backward, it would be there at 18
}

/// Ranks in a ring that hand a message on, each with work of its own before it; three share two cores.
TEST(Simulate, SharedCoresAndWaitsTogether) {
  schedule::StepProgram program;
  program.channels = {{schedule::ChannelKind::kValue, 0, 1, 0, 1},
                      {schedule::ChannelKind::kValue, 1, 2, 1, 2}};
  const Operation work{.kind = OperationKind::kUpdate};
  const auto message = [](OperationKind kind, int channel) {
    return Operation{.kind = kind, .channel = channel, .item = 0, .microbatch = 0};
  };
  program.ranks = {{work, message(OperationKind::kSend, 0)},
                   {message(OperationKind::kRecv, 0), work, message(OperationKind::kSend, 1)},
                   {work, message(OperationKind::kRecv, 1), work}};
  const Prices prices = {{{4, 0}, {0, 2}}, {{0, 0}, {6, 0}, {0, 2}}, {{9, 0}, {0, 0}, {1, 0}}};
  const Simulation result = simulate(program, prices, make_topology(3, 2));
  // 4: sent; 6: rank 1 begins beside rank 2, which ends at 9; 12: sent; 14: rank 2 goes on.
  EXPECT_EQ(result.step_us, 15);
  EXPECT_EQ(result.busy_us, (std::vector<double>{4, 6, 10}));
  EXPECT_EQ(result.channels[1].arrived_us, std::vector<double>{14});
}

/// Eight pipelines of 64 ranks, 60 microbatches.
TEST(Simulate, AStepOfManyRanksCostsItsOperations) {
  constexpr int kStages = 64, kPipelines = 8, kMicrobatches = 60;
  schedule::StepProgram program;
  Prices prices(static_cast<std::size_t>(kStages) * kPipelines);
  program.ranks.resize(prices.size());
  for (int d = 0; d < kPipelines; ++d) {
    for (int s = 0; s < kStages; ++s) {
      const int rank = d * kStages + s, in = static_cast<int>(program.channels.size()) - 1;
      if (s + 1 < kStages) {
        program.channels.push_back({schedule::ChannelKind::kValue, s, s + 1, rank, rank + 1});
      }
      for (int m = 0; m < kMicrobatches; ++m) {
        const auto add = [&](const Operation& operation, const Price& price) {
          program.ranks[rank].push_back(operation);
          prices[rank].push_back(price);
        };
        if (s > 0)
          add({.kind = OperationKind::kRecv, .channel = in, .item = 0, .microbatch = m}, {});
        add({.kind = OperationKind::kUpdate}, {2, 0});
        if (s + 1 < kStages) {
          add({.kind = OperationKind::kSend, .channel = in + 1, .item = 0, .microbatch = m},
              {0, 1});
        }
      }
    }
  }
  const Simulation result = simulate(program, prices, make_topology(kStages * kPipelines));
  EXPECT_EQ(result.step_us, (kStages - 1) * 3 + kMicrobatches * 2);
}

TEST(Simulate, WaitsForEverAreNamed) {
  schedule::StepProgram program;
  program.channels = {{schedule::ChannelKind::kValue, 0, 1, 0, 1}};
  program.ranks = {{}, {{.kind = OperationKind::kRecv, .channel = 0, .item = 7, .microbatch = 0}}};
  try {
    simulate(program, {{}, {{}}}, make_topology(2));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 1 at 'recv v7 m0 0>1'"));
  }
}

TEST(Simulate, TheTimelineShowsWorkAndWaits) {
  const Model model = make_chain({{1, 1, 1}, {1, 1, 1}});
  const Forecast result = forecast_of(model, {{1}, 2, 1, "interleaved"}, make_topology(2));
  const schedule::Timeline timeline = predicted_timeline(result.program, result.simulation);
  EXPECT_EQ(timeline.name, "predicted");
  EXPECT_EQ(schedule::draw(timeline, 9), "rank 0 | FF..BB.BB\nrank 1 | .FBBFBB..\n");
  EXPECT_EQ(timeline.events.front(),
            (schedule::TimelineEvent{0, "compute", "F", "0F0", 0, 0, 0, 1}));
}

TEST(Simulate, NoStepBeatsTheBounds) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  for (int round = 0; round < 200; ++round) {
    const int p = 1 + pick(4), m = 1 + pick(6), replicas = 1 + pick(2);
    std::vector<ChainNode> nodes(p);
    for (ChainNode& node : nodes) node = {pick(9) + 1.0, pick(9) + 0.0, pick(9) + 0.0, 1, 1};
    Model model = make_chain(nodes);
    model.profile.step = {0.5 * pick(3), 0.5 * pick(3), 100.0 * pick(3)};
    const double latency = pick(4);
    model.profile.links = {{profile::LinkKind::kHost, {{0, latency, latency}}}};
    const int num_cores = pick(2) == 0 ? 0 : 1 + pick(p * replicas);
    const char* schedule = pick(2) == 0 ? "simple" : "interleaved";
    const Forecast result = forecast_of(model, {every_cut(p), m, replicas, schedule},
                                        make_topology(p * replicas, num_cores));
    EXPECT_GE(result.simulation.step_us * (1 + 1e-9), result.plan_bound_us);
    EXPECT_GE(result.simulation.step_us * (1 + 1e-9), result.any_bound_us);
  }
}

}  // namespace
}  // namespace trireme::simulate
