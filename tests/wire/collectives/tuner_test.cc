// What the tuner chooses, the file form of its numbers, and the measurement over live groups.

#include "trireme/wire/collectives/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/wire/collectives/group_world.h"
#include "trireme/wire/collectives/measure.h"

namespace trireme::collectives::test {
namespace {

using enum Algorithm;
using testing::HasSubstr;

/// 20 us per message, 12.5 GB/s, reduces 10 GB/s.
Costs fast_network() {
  return {.network = {.alpha_s = 20e-6, .beta_s_per_byte = 1 / 12.5e9},
          .local = {.alpha_s = 2e-6, .beta_s_per_byte = 1 / 20e9},
          .gamma_s_per_byte = 1 / 10e9};
}

TunerTask sum_of(std::int64_t bytes, std::uint32_t num_ranks, Order order = Order::kCanonical) {
  return {.description = {.operation = Collective::kAllReduce,
                          .dtype = Dtype::kF32,
                          .count = bytes / 4,
                          .group_size = num_ranks,
                          .order = order}};
}

TEST(Tuner, HasTheCostsOfTheDocument) {
  const Costs costs{.network = {.alpha_s = 1, .beta_s_per_byte = 0.001},
                    .gamma_s_per_byte = 0.0001};
  const TunerTask task = sum_of(8000, 8, Order::kAny);
  EXPECT_NEAR(predicted_seconds(kOneShot, task, costs), 1 + 7 * 8 + 8 * 0.8, 1e-9);
  EXPECT_NEAR(predicted_seconds(kTwoHop, task, costs), 2 + 14 + 0.8, 1e-9);
  EXPECT_NEAR(predicted_seconds(kHalvingDoubling, task, costs), 6 + 14 + 1.4, 1e-9);
  EXPECT_NEAR(predicted_seconds(kRing, task, costs), 14 + 14 + 1.4, 1e-9);
  // Two hosts of four: the inside is free here.
  TunerTask hosts = task;
  hosts.ranks_per_host = 4;
  EXPECT_NEAR(predicted_seconds(kTwoLevel, hosts, costs), 2 + 8 + 0.8 + 0.2, 1e-9);
  EXPECT_NEAR(predicted_seconds(kTwoHop, hosts, costs), 2 + 2 * 4 * 4 + 0.8, 1e-9);
  EXPECT_NEAR(predicted_seconds(kRing, hosts, costs), 14 + 14 + 1.4, 1e-9);
  EXPECT_THROW(predicted_seconds(kTwoLevel, task, costs), Error);
}

// Two hosts of four, then three of two: the inside is free; 8 kB, or 16 kB as partial results.
TEST(Tuner, CountsWhatLeavesAHost) {
  const Costs costs{.network = {.alpha_s = 1, .beta_s_per_byte = 0.001}};
  const auto seconds = [&](Collective operation, Dtype dtype, int num_ranks, int per_host) {
    const TunerTask task{.description = {.operation = operation,
                                         .dtype = dtype,
                                         .reduce = kernels::ReduceOp::kAverage,
                                         .count = 8000 / static_cast<int>(size_bytes(dtype)),
                                         .group_size = static_cast<std::uint32_t>(num_ranks)},
                         .ranks_per_host = per_host};
    return predicted_seconds(kTwoLevel, task, costs);
  };
  using enum Collective;
  EXPECT_NEAR(seconds(kReduceScatter, Dtype::kF32, 8, 4), 1 + 4, 1e-9);
  EXPECT_NEAR(seconds(kReduceScatter, Dtype::kBf16, 8, 4), 1 + 8, 1e-9);
  EXPECT_NEAR(seconds(kAllReduce, Dtype::kBf16, 8, 4), 2 + 8 + 4, 1e-9);
  EXPECT_NEAR(seconds(kReduce, Dtype::kF32, 8, 4), 1 + 8, 1e-9);
  EXPECT_NEAR(seconds(kReduce, Dtype::kF32, 6, 2), 2 + 8, 1e-9);
  EXPECT_NEAR(seconds(kAllGather, Dtype::kU8, 6, 2), 1 + 2. / 3 * 8, 1e-9);
  EXPECT_NEAR(seconds(kBroadcast, Dtype::kU8, 8, 4), 1 + 8, 1e-9);
  EXPECT_NEAR(seconds(kBroadcast, Dtype::kU8, 6, 2), 2 + 8, 1e-9);
  EXPECT_NEAR(seconds(kBarrier, Dtype::kU8, 6, 2), 2, 1e-9);
}

TEST(Tuner, TakesTwoLevelsWhereHostsShareALink) {
  const Costs slow{.network = {.alpha_s = 200e-6, .beta_s_per_byte = 80e-9},
                   .local = {.alpha_s = 10e-6, .beta_s_per_byte = 0.3e-9}};
  TunerTask task = sum_of(1 << 20, 4);
  task.ranks_per_host = 2;
  for (const Collective operation : {Collective::kReduceScatter, Collective::kReduce,
                                     Collective::kBroadcast, Collective::kBarrier}) {
    task.description.operation = operation;
    EXPECT_EQ(cheapest(task, slow), kTwoLevel) << to_text(operation);
  }
  task.description.operation = Collective::kAllGather;
  EXPECT_EQ(cheapest(task, slow), kTwoLevel);
}

TEST(Tuner, ThreeRanksGoThroughTheLeftPair) {
  const Costs costs{.network = {.alpha_s = 1, .beta_s_per_byte = 0.001}};
  // A half between 0 and 1; all of it, half to each, from 2; and back.
  EXPECT_NEAR(predicted_seconds(kHalvingDoubling, sum_of(8000, 3), costs), 4 + 2 * (4 + 8), 1e-9);
}

TEST(Tuner, PartsAreBundledWhereMessagesCostMoreThanBytes) {
  const Costs costs{.network = {.alpha_s = 1, .beta_s_per_byte = 0.001},
                    .local = {.alpha_s = 1, .beta_s_per_byte = 0.0005}};
  const auto parts = [](std::int64_t bytes, int hosts, int per_host) {
    return TunerTask{.description = {.operation = Collective::kAllToAll,
                                     .count = bytes,
                                     .group_size = static_cast<std::uint32_t>(hosts * per_host)},
                     .ranks_per_host = per_host};
  };
  // 4 messages to the other host and 3 inside; or 3 inside and 1.
  EXPECT_NEAR(predicted_seconds(kTwoHop, parts(100, 2, 4), costs), 2.5 + 1.5 + 1.6, 1e-9);
  EXPECT_NEAR(predicted_seconds(kTwoLevel, parts(100, 2, 4), costs), 2 + 0.3 + 1 + 1.6, 1e-9);
  EXPECT_EQ(cheapest(parts(100, 2, 4), costs), kTwoLevel);
  EXPECT_EQ(cheapest(parts(10000, 2, 4), costs), kTwoHop);
  EXPECT_EQ(cheapest(parts(100, 2, 2), costs), kTwoHop);
  EXPECT_EQ(cheapest(parts(100, 8, 1), costs), kTwoHop);
}

TEST(Tuner, ChoosesBySize) {
  const Costs costs = fast_network();
  EXPECT_EQ(cheapest(sum_of(1024, 8), costs), kOneShot);
  EXPECT_EQ(cheapest(sum_of(256 * 1024, 8), costs), kHalvingDoubling);
  EXPECT_EQ(cheapest(sum_of(64 << 20, 8), costs), kTwoHop);
  EXPECT_EQ(cheapest(sum_of(64 << 20, 2), costs), kTwoHop);
  TunerTask hosts = sum_of(64 << 20, 8);
  hosts.ranks_per_host = 4;
  EXPECT_EQ(cheapest(hosts, costs), kTwoLevel);
  hosts.ranks_per_host = 8;  // one host, nothing to go between
  EXPECT_EQ(cheapest(hosts, costs), kTwoHop);
}

TEST(Tuner, TakesTwoHopsOnlyForLargeChunksOrWhereNothingElseCan) {
  // Messages for nothing, sums dear: two-hop would always be the cheapest.
  const Costs costs{.network = {.beta_s_per_byte = 1}, .gamma_s_per_byte = 2};
  EXPECT_EQ(cheapest(sum_of(4 * kMinTwoHopChunkBytes - 4, 4), costs), kHalvingDoubling);
  EXPECT_EQ(cheapest(sum_of(4 * kMinTwoHopChunkBytes, 4), costs), kTwoHop);
  TunerTask gather = sum_of(100, 4);
  gather.description.operation = Collective::kAllGather;
  EXPECT_EQ(cheapest(gather, fast_network()), kTwoHop);
  gather.description.operation = Collective::kAllToAll;
  EXPECT_EQ(cheapest(gather, fast_network()), kTwoHop);
  TunerTask none = sum_of(100, 4);
  none.description.dtype = Dtype::kC64;
  EXPECT_THROW(cheapest(none, costs), Error);
}

// 4 hosts at 1 Gb/s: two hops of 1 MiB took 1.3 times as long as halving and doubling.
TEST(Tuner, OnSlowLinksQueuesOfManyCostMoreThanMessages) {
  const Costs slow{.network = {.alpha_s = 200e-6, .beta_s_per_byte = 8e-9},
                   .gamma_s_per_byte = 0.1e-9};
  EXPECT_EQ(cheapest(sum_of(1 << 20, 4), slow), kHalvingDoubling);
  EXPECT_EQ(cheapest(sum_of(4 << 20, 4), slow), kHalvingDoubling);
  EXPECT_EQ(cheapest(sum_of(16 << 20, 2), fast_network()), kTwoHop);
  EXPECT_EQ(cheapest(sum_of(64 << 20, 4), fast_network()), kTwoHop);
  // In buffers: nothing waits.
  EXPECT_NEAR(predicted_seconds(kTwoHop, sum_of(64 << 10, 4), slow),
              2 * 200e-6 + 1.5 * 65536 * 8e-9 + 65536 * 0.1e-9, 1e-9);
}

TEST(Tuner, PrintsItsChoices) {
  const std::string table = choices_text(sum_of(0, 8), fast_network());
  EXPECT_THAT(table, HasSubstr("       bytes          one_shot           two_hop  "));
  EXPECT_THAT(table, HasSubstr("        1024           21.4 us           40.2 us          120.3 us"
                               "  one_shot\n"));
  EXPECT_THAT(table, HasSubstr("  1073741824  "));
  EXPECT_EQ(std::ranges::count(table, '\n'), 12);
}

TEST(Tuner, PrintsCosts) {
  const Costs costs{.network = {.alpha_s = 20e-6, .beta_s_per_byte = 0.08e-9},
                    .local = {.alpha_s = 2.5e-6, .beta_s_per_byte = 0},
                    .gamma_s_per_byte = 0.1e-9};
  EXPECT_EQ(to_text(costs), R"(network costs     us / message    ns / byte    GB/s
between hosts            20.0       0.0800    12.5
on a host                 2.5       0.0000       -
reducing                  0.0       0.1000    10.0
)");
}

TEST(Tuner, CostsReadBack) {
  const Costs costs = fast_network();
  EXPECT_EQ(costs_from_json(to_json(costs)), costs);
  const std::filesystem::path path = testing::TempDir() + "/network_costs.json";
  save(costs, path);
  EXPECT_EQ(load_costs(path), costs);
  Json body = to_json(costs);
  body["local"]["alpha_s"] = -1.0;
  EXPECT_THAT(transport::test::error_of_call([&] { costs_from_json(body); }).message(),
              HasSubstr("network_costs.local.alpha_s"));
  body = to_json(costs);
  body.erase("network");
  EXPECT_THROW(costs_from_json(body), Error);
  std::ofstream(path) << "{}";
  EXPECT_THROW(load_costs(path), Error);
}

class MeasureTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, MeasureTest, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(MeasureTest, AllRanksHaveTheSameNumbers) {
  for (const auto& [num_ranks, ranks_per_host] : {std::pair(1, 1), {3, 1}, {4, 2}, {4, 4}}) {
    std::vector<Costs> measured(num_ranks);
    transport::test::expect_no_errors(run_group(GetParam(), num_ranks, [&](Group& group) {
      measured[group.group_rank()] = measure_costs(group, ranks_per_host);
    }));
    for (const Costs& costs : measured) {
      EXPECT_EQ(costs, measured[0]);
      EXPECT_GT(costs.gamma_s_per_byte, 0);
      EXPECT_EQ(costs.network.alpha_s > 0, num_ranks > 1);
      EXPECT_LT(costs.network.alpha_s, 1);
      EXPECT_GE(costs.local.beta_s_per_byte, 0);
    }
  }
}

TEST(Measure, RefusesHostsThatDoNotDivideTheGroup) {
  transport::test::expect_no_errors(run_group(
      Backend::kSim, 3, [](Group& group) { EXPECT_THROW(measure_costs(group, 2), Error); }));
}

// Two hosts of two ranks: what leaves a host is what counts.
TEST(Measure, OfAWorldAndItsHosts) {
  Endpoints endpoints = transport::make_sim_world(4, {.ranks_per_host = 2});
  std::vector<Costs> measured(4);
  transport::test::expect_no_errors(transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    measured[endpoint.rank()] = measure_world_costs(endpoint, std::chrono::seconds(20));
    Group group(endpoint, first_ranks(4), {.name = "data", .algorithm = kTwoLevel});
    std::vector<float> data(1000, static_cast<float>(endpoint.rank() + 1));
    transport::test::wait_for(group.all_reduce(std::span(data)));
    EXPECT_EQ(data, std::vector<float>(1000, 10));
    EXPECT_EQ(group.flight().operations.at(0).algorithm, kTwoLevel);
  }));
  for (const Costs& costs : measured) {
    EXPECT_EQ(costs, measured[0]);
    EXPECT_GT(costs.local.alpha_s, 0);
  }
}

TEST(Measure, SendsNothingWhereAllShareMemory) {
  Endpoints endpoints = transport::test::make_world(Backend::kSimShared, 2);
  EXPECT_EQ(measure_world_costs(*endpoints[0], std::chrono::seconds(1)), kUsualCosts);
}

}  // namespace
}  // namespace trireme::collectives::test
