#include "trireme/plan/partition/explain.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

TEST(Explain, ReadsAsTables) {
  auto model = layout::testing::make_chain(
      {{100, 100, 100, 100, 1000}, {50, 50, 50, 100, 500}, {25, 25, 25, 100, 500}});
  model.profile.links = {{profile::LinkKind::kHost, {{0, 5, 5}}}};
  const topology::Topology topology = layout::testing::make_topology(2);
  const layout::Plan plan = partition(model.graph, model.profile, topology,
                                      {.batch = {4, 1, 1}, .schedule = "interleaved"});
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto forecast = simulate::forecast({model.graph, plan, map, model.profile, topology});
  EXPECT_EQ(explain(model.graph, plan, forecast),
            R"(step 1.380 ms, schedule interleaved, 2 stages x 1 replicas
  lower bounds: 1.200 ms with these stages (step 15.0 % above), 1.050 ms with any (31.4 %)
  peak 22.3 KiB at most on the fullest rank, 21.4 KiB expected

stages, for one microbatch
  stage  nodes  first   copies   F ms   B ms  receives  sends    busy
      0      1  linear       0  0.100  0.200     400 B  400 B  87.0 %
      1      3  linear       0  0.075  0.150     400 B  400 B  65.2 %

peak memory of a rank of the stage
  stage  parameters  gradients  optimizer  activations  transient  messages  batch  fixed     total
      0     3.9 KiB    3.9 KiB    7.9 KiB        800 B    3.9 KiB   1.8 KiB   68 B    0 B  22.3 KiB
      1     4.0 KiB    4.0 KiB    8.0 KiB        800 B    2.7 KiB   1.8 KiB    0 B    0 B  21.3 KiB

what limits a stage
  stage 0: its work: busy 87 % of the step
  stage 1: stage 0, for which it waits: busy 65 % of the step
)");
}

}  // namespace
}  // namespace trireme::partition
