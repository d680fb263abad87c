#include "trireme/engine/data_parallel/reducer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <latch>

#include "tests/models/models.h"
#include "tests/wire/transport/ranks.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/wire/transport/sim/world.h"

namespace trireme::data_parallel {
namespace {

using namespace std::chrono_literals;

/// One replica: a model and its sums, a bucket per parameter.
struct Replica {
  models::TestModel test = models::make("mlp");
  record::Recording recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  parameters::ParameterStore store{
      parameters::make_parameter_map(
          recording.graph,
          layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph), {},
                                   {8, 1, 2}),
          {.bucket_bytes = 1}),
      recording.graph,
      recording.tensors,
      {}};
  parameters::LaneAccumulator sums{store, recording.graph, 1};
  std::vector<int> buckets;

  /// rank   of the replica: the numbers differ between them.
  explicit Replica(int rank) {
    for (std::size_t b = 0; b < store.map().buckets.size(); ++b) {
      buckets.push_back(static_cast<int>(b));
    }
    sums.begin_step();
    for (const int bucket : buckets) sums.gradients().flat(bucket).copy_(part(rank, bucket));
  }

  /// What a rank gives for a bucket.
  at::Tensor part(int rank, int bucket) const {
    auto random = at::make_generator<at::CPUGeneratorImpl>(100 * rank + bucket);
    return torch::randn({sums.gradients().flat(bucket).numel()}, random) *
           std::pow(10.F, static_cast<float>(rank));
  }

  /// The sum over `count` ranks from `first`, by the balanced tree.
  at::Tensor sum(int first, int count, int bucket) const {
    if (count == 1) return part(first, bucket);
    int left = 1;
    while (2 * left < count) left *= 2;
    return sum(first, left, bucket) + sum(first + left, count - left, bucket);
  }
};

/// Runs it as each of the replicas.
void run(int num_replicas, const std::function<void(Replica&, collectives::Group&, int)>& body) {
  auto endpoints = transport::make_sim_world(
      num_replicas, {.seed = 1, .max_delay = std::chrono::microseconds(200)});
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<int> ranks;
  for (int rank = 0; rank < num_replicas; ++rank) {
    replicas.push_back(std::make_unique<Replica>(rank));
    ranks.push_back(rank);
  }
  transport::test::expect_no_errors(transport::test::run_threads(num_replicas, [&](int rank) {
    collectives::Group group(*endpoints[rank], ranks,
                             {.name = "data", .id = 1, .deadline = std::chrono::seconds(20)});
    body(*replicas[rank], group, rank);
  }));
}

// Buckets are complete in another order on each replica; the sums are started in one order.
TEST(Reducer, SumsByTheTreeWhateverTheOrderOfBuckets) {
  for (const int num_replicas : {2, 3, 4}) {
    run(num_replicas, [&](Replica& replica, collectives::Group& group, int rank) {
      Reducer reducer(replica.sums, group, replica.buckets);
      reducer.begin_step();
      std::vector<int> order = replica.buckets;
      std::rotate(order.begin(), order.begin() + rank, order.end());
      for (const int bucket : order) reducer.on_sum(bucket);
      for (const int bucket : replica.buckets) {
        transport::test::wait_for(reducer.work(bucket));
        EXPECT_TRUE(torch::equal(replica.sums.gradients().flat(bucket),
                                 replica.sum(0, num_replicas, bucket)))
            << "bucket " << bucket << " of " << num_replicas << " replicas";
      }
    });
  }
}

// Complete buckets wait for those before them: started in another order than on other replicas,
// they would be summed with the wrong ones.
TEST(Reducer, StartsABucketOnceAllBeforeItAreComplete) {
  std::latch is_seen(1);
  run(2, [&](Replica& replica, collectives::Group& group, int rank) {
    Reducer reducer(replica.sums, group, {2, 0, 1});
    reducer.begin_step();
    if (rank == 0) {
      for (const int bucket : {1, 0}) reducer.on_sum(bucket);
      is_seen.wait();
      reducer.on_sum(2);
    } else {
      for (const int bucket : {2, 0, 1}) reducer.on_sum(bucket);
      for (const int bucket : {2, 0, 1}) EXPECT_FALSE(reducer.work(bucket)->wait_for(5ms));
      is_seen.count_down();
    }
    for (const int bucket : {0, 1, 2}) {
      transport::test::wait_for(reducer.work(bucket));
      EXPECT_TRUE(torch::equal(replica.sums.gradients().flat(bucket), replica.sum(0, 2, bucket)));
    }
  });
}

}  // namespace
}  // namespace trireme::data_parallel
