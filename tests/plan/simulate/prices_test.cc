#include "trireme/plan/simulate/prices.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/simulate/simulate.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;
using layout::testing::make_topology;
using schedule::OperationKind;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

/// `kind work+delay` of the operations of a rank that take time.
std::string picture(const schedule::StepProgram& program, const Prices& prices, int rank) {
  std::string text;
  for (std::size_t i = 0; i < program.ranks[rank].size(); ++i) {
    const Price& price = prices[rank][i];
    if (price.work_us == 0 && price.delay_us == 0) continue;
    const auto number = [](double us) { return std::to_string(static_cast<int>(us)); };
    text += (text.empty() ? "" : " | ") + schedule::to_text(program, program.ranks[rank][i]) + " " +
            number(price.work_us) + "+" + number(price.delay_us);
  }
  return text;
}

TEST(Prices, OfTwoStagesOfTwoReplicas) {
  auto model = make_chain({{1, 2, 3, 250, 2000}, {4, 5, 6, 1, 4000}});
  model.profile.step = {2, 1, 1};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 10}, {1000, 20, 30}}}};
  const layout::Plan plan = make_plan(model.graph, {{1}, 1, 2});
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {.has_norm = true});
  const topology::Topology topology = make_topology(4);
  const Prices result = prices(program, stage_costs(model.graph, plan, model.profile),
                               {model.graph, plan, map, model.profile, topology});
  // A value of 1000 bytes: 1 to copy, 30 on its way. The sum of 2000 elements: two hops of 4000
  // bytes, 30 + 3 * 20 each, and 1000 folds of 1 ns. Small messages: two hops of 3/4 or 1/2 KiB.
  EXPECT_EQ(picture(program, result, 0),
            "compute 0F0 1+0 | send v2 m0 0>1 1+30 | reduce bucket 0 0+181 | compute 0B0 7+0 | "
            "exchange 0+50 | norm 2+40 | commit 0+40 | update 4+0");
  EXPECT_EQ(result[0], result[1]);
}

// Where the transport has no core of its own, the sender pays for what both do; between stages of a rank nothing moves.
TEST(Prices, OfMessagesThatTakeAComputingCore) {
  auto model = make_chain({{1, 2, 3, 250, 1}, {4, 5, 6, 1, 1}});
  model.profile.step = {.copy_ns_per_byte = 1, .messages = {{0, 40}, {2000, 80}}};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 10}, {1000, 20, 30}}}};
  layout::Plan plan = make_plan(model.graph, {{1}, 1});
  const auto sends = [&] {
    const auto map = layout::make_parameter_map(model.graph, plan);
    const auto program = schedule::make_step_program(model.graph, plan, map, {});
    const topology::Topology topology = make_topology(2);
    const auto costs = stage_costs(model.graph, plan, model.profile);
    const Prices result = prices(program, costs, {model.graph, plan, map, model.profile, topology});
    return picture(program, result, 0) + std::to_string(std::lround(costs[0].copy_us));
  };
  EXPECT_THAT(sends(), AllOf(HasSubstr("send v2 m0 0>1 61+30"), EndsWith("61")));
  plan.roles[0].mesh.pipeline = 1;
  plan.roles[0].placement = {0};
  for (layout::Stage& stage : plan.stages) stage.position = 0;
  EXPECT_THAT(sends(), AllOf(HasSubstr("send v2 m0 0>1 1+0"), EndsWith("1")));
}

// A microbatch keeps its output of 1000 bytes.
TEST(Prices, OfFiles) {
  auto model = make_chain({{1, 2, 3, 250, 16}, {4, 5, 6, 1, 16}});
  model.profile.step = {0, 0, 0, profile::FileCosts{2, 5}};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {1000, 0, 0}}}};
  layout::Plan plan = make_plan(model.graph, {{1}, 3});
  plan.stages[0].offload = true;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {});
  const topology::Topology topology = make_topology(2);
  const auto priced = [&] {
    return prices(program, stage_costs(model.graph, plan, model.profile),
                  {model.graph, plan, map, model.profile, topology});
  };
  EXPECT_EQ(picture(program, priced(), 0),
            "compute 0F0 1+0 | offload 0F0 2+0 | compute 0F1 1+0 | offload 0F1 2+0 | "
            "compute 0F2 1+0 | offload 0F2 2+0 | fetch 0B0 5+0 | compute 0B0 5+0 | "
            "fetch 0B1 5+0 | compute 0B1 5+0 | fetch 0B2 5+0 | compute 0B2 5+0");
  model.profile.step.file.reset();
  EXPECT_THROW(priced(), Error);
}

// 65,536 elements in two shards, summed half the way; each updates its own, which then go to the other.
TEST(Prices, OfReplicasThatShareState) {
  auto model = make_chain({{1, 2, 3, 250, 65536}});
  model.profile.step = {2, 1, 1};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {1024, 8, 8}}}};
  layout::Plan plan = make_plan(model.graph, {{}, 1, 2});
  plan.sharded_state = true;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {.has_norm = true});
  const topology::Topology topology = make_topology(2);
  const Prices result = prices(program, stage_costs(model.graph, plan, model.profile),
                               {model.graph, plan, map, model.profile, topology});
  EXPECT_EQ(picture(program, result, 0),
            "compute 0F0 1+0 | reduce bucket 0 0+1056 | compute 0B0 70+0 | exchange 0+8 | "
            "norm 32+0 | commit 0+8 | update 65+0 | gather bucket 0 0+1024");
}

// The same of values in shards: they are gathered before the stage runs, and not after the update.
TEST(Prices, OfReplicasThatShareParameters) {
  auto model = make_chain({{1, 2, 3, 250, 65536}});
  model.profile.step = {2, 1, 1};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {1024, 8, 8}}}};
  layout::Plan plan = make_plan(model.graph, {{}, 1, 2});
  plan.sharded_state = plan.sharded_parameters = true;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {.has_norm = true});
  const topology::Topology topology = make_topology(2);
  const Prices result = prices(program, stage_costs(model.graph, plan, model.profile),
                               {model.graph, plan, map, model.profile, topology});
  EXPECT_EQ(picture(program, result, 0),
            "unshard bucket 0 0+1024 | compute 0F0 1+0 | reduce bucket 0 0+1056 | "
            "compute 0B0 70+0 | exchange 0+8 | norm 32+0 | commit 0+8 | update 65+0");
  EXPECT_GT(simulate(program, result, topology).step_us, 1024 + 71 + 1056);
}

// Half the bytes, and 65,536 more folds of 1 ns for rounding and widening.
TEST(Prices, OfReplicasThatSendBf16) {
  const auto model = make_chain({{1, 2, 3, 250, 65536}});
  profile::Profile profile = model.profile;
  profile.step = {2, 1, 1};
  profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {1024, 8, 8}}}};
  const layout::Plan plan = make_plan(model.graph, {{}, 1, 2});
  const layout::Bucket bucket = layout::make_parameter_map(model.graph, plan).buckets[0];
  const auto us = [&](const layout::Bucket& of, const BucketSum& sum) {
    return bucket_us(profile, {.num_ranks = 2}, of, sum);
  };
  EXPECT_DOUBLE_EQ(us(bucket, {}), 2048 + 32.768);
  EXPECT_DOUBLE_EQ(us(bucket, {Dtype::kBf16}), 1024 + 32.768 + 65.536);
  EXPECT_DOUBLE_EQ(us(bucket, {Dtype::kBf16, true}), 512 + 32.768 + 65.536);
  layout::Bucket wide = bucket;
  wide.dtype = Dtype::kF64;
  EXPECT_DOUBLE_EQ(us(wide, {Dtype::kBf16}), us(wide, {})) << "stays f64";
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {});
  const topology::Topology topology = make_topology(2);
  const Prices result = prices(program, stage_costs(model.graph, plan, profile),
                               {model.graph, plan, map, profile, topology}, Dtype::kBf16);
  EXPECT_THAT(picture(program, result, 0), testing::HasSubstr("reduce bucket 0 0+1122"));
}

// 1 us for 1,000 bytes within a host, 10 us between hosts.
TEST(Prices, OfASumOverHostsOfSeveralRanks) {
  profile::Profile profile;
  profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {1000, 1, 1}}},
                   {profile::LinkKind::kNetwork, {{0, 0, 0}, {1000, 10, 10}}}};
  const auto us = [&](const std::vector<int>& hosts) {
    topology::Topology topology = make_topology(static_cast<int>(hosts.size()));
    std::vector<int> ranks;
    for (std::size_t r = 0; r < hosts.size(); ++r) {
      topology.ranks[r].host = hosts[r];
      ranks.push_back(static_cast<int>(r));
    }
    return reduce_us(profile, sum_group(topology, ranks), 12'000);
  };
  EXPECT_DOUBLE_EQ(us({0}), 0);
  EXPECT_DOUBLE_EQ(us({0, 0, 0, 0}), 2 * 9);
  EXPECT_DOUBLE_EQ(us({0, 1}), 2 * 60);
  EXPECT_DOUBLE_EQ(us({0, 0, 1, 1}), 2 * 6 + 2 * 30) << "flat: 2 x 90";
  EXPECT_DOUBLE_EQ(us({0, 0, 1, 1, 2, 2}), 2 * 6 + 2 * 40);
  EXPECT_DOUBLE_EQ(us({0, 1, 0, 1}), 2 * 90) << "those of a host do not follow one another";
  EXPECT_DOUBLE_EQ(us({0, 0, 1}), 2 * 80) << "hosts of different numbers";
  EXPECT_DOUBLE_EQ(us({0, 0, 0, 1, 1, 1}), 2 * 100) << "three ranks a host are flat";
}

TEST(Prices, OfAnEvaluation) {
  auto model = make_chain({{1, 2, 3, 250, 2000}, {4, 5, 6, 1, 4000}});
  model.profile.step = {2, 1, 1};
  model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 10}, {1000, 20, 30}}}};
  const layout::Plan plan = make_plan(model.graph, {{1}});
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_evaluation_program(model.graph, plan, 2);
  const topology::Topology topology = make_topology(2);
  const Prices result = prices(program, stage_costs(model.graph, plan, model.profile),
                               {model.graph, plan, map, model.profile, topology});
  EXPECT_EQ(picture(program, result, 0),
            "compute 0F0 1+0 | send v2 m0 0>1 1+30 | compute 0F1 1+0 | send v2 m1 0>1 1+30 | "
            "exchange 0+40");
  EXPECT_EQ(picture(program, result, 1), "compute 1F0 4+0 | compute 1F1 4+0 | exchange 0+40");
  // The second message follows the first: there at 62, worked on until 66; then two hops.
  EXPECT_DOUBLE_EQ(simulate(program, result, topology).step_us, 106.48);
}

TEST(Prices, LinksBetweenHostsAreOfTheNetwork) {
  topology::Topology topology = make_topology(2);
  EXPECT_EQ(link_kind(topology, 0, 1), profile::LinkKind::kHost);
  topology.hosts.push_back({"b", 2, 1024});
  topology.ranks[1].host = 1;
  EXPECT_EQ(link_kind(topology, 0, 1), profile::LinkKind::kNetwork);
  auto model = make_chain({{}, {}});
  model.profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}}}};
  const layout::Plan plan = make_plan(model.graph, {{1}});
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto program = schedule::make_step_program(model.graph, plan, map, {});
  const auto costs = stage_costs(model.graph, plan, model.profile);
  EXPECT_THROW(prices(program, costs, {model.graph, plan, map, model.profile, topology}), Error);
  const topology::Topology small = make_topology(1);
  EXPECT_THROW(prices(program, costs, {model.graph, plan, map, model.profile, small}), Error);
}

}  // namespace
}  // namespace trireme::simulate
