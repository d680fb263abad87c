#include "trireme/plan/partition/bucket_size.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;

/// Eight parameters of 4 MiB, each complete a millisecond after the other; a link of 1 GB/s that takes `start_us` for each message.
layout::testing::Model slow_sums(double start_us) {
  layout::testing::Model model = make_chain(std::vector<ChainNode>(8, {500, 500, 500, 1, 1 << 20}));
  const double end_us = start_us + (1 << 26) / 1000.0;
  model.profile.links = {
      {profile::LinkKind::kHost, {{0, start_us, start_us}, {1 << 26, end_us, end_us}}}};
  return model;
}

/// A plan of two replicas, before and after.
struct BucketSizes {
  Candidate usual, best;
};

BucketSizes sizes_for(const layout::testing::Model& model, int replicas = 2) {
  const topology::Topology topology = make_topology(replicas);
  const PartitionOptions options{
      .batch = {2 * replicas, 1, replicas}, .replicas = replicas, .stages = 1};
  const Problem problem{model.graph, model.profile, topology, options,
                        graph::graph_sha256(model.graph)};
  const Candidate usual =
      evaluate(problem, {.schedule = "simple", .copied_nodes = {}, .planned = model.graph}, {});
  return {usual, with_bucket_size(problem, usual)};
}

TEST(BucketSize, SmallOnesAreOnTheirWayEarlier) {
  const BucketSizes found = sizes_for(slow_sums(1));
  EXPECT_EQ(found.usual.plan.bucket_bytes, layout::kUsualBucketBytes);
  EXPECT_LT(found.best.plan.bucket_bytes, 5 << 20);
  EXPECT_LT(found.best.forecast.simulation.step_us, 0.92 * found.usual.forecast.simulation.step_us);
}

TEST(BucketSize, LargeOnesCostFewerStarts) {
  const BucketSizes found = sizes_for(slow_sums(100000));
  EXPECT_GT(found.best.plan.bucket_bytes, layout::kUsualBucketBytes);
  EXPECT_LT(found.best.forecast.simulation.step_us, found.usual.forecast.simulation.step_us);
}

TEST(BucketSize, StaysWhereItDoesNotMatter) {
  EXPECT_EQ(sizes_for(slow_sums(1), 1).best.plan.bucket_bytes, layout::kUsualBucketBytes);
  EXPECT_EQ(sizes_for(make_chain(std::vector<ChainNode>(8, {500, 500, 500, 1, 1000})))
                .best.plan.bucket_bytes,
            layout::kUsualBucketBytes);
}

}  // namespace
}  // namespace trireme::partition
