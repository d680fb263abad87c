#include "trireme/engine/parameters/replica_sums.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <latch>
#include <numeric>

#include "tests/engine/parameters/replicas.h"
#include "trireme/engine/memory/process_memory.h"

namespace trireme::parameters {
namespace {

using namespace std::chrono_literals;
using test::Replica;

/// What a rank gives for a bucket: other numbers than other ranks'.
at::Tensor part(const Replica& replica, int rank, int bucket) {
  auto random = at::make_generator<at::CPUGeneratorImpl>(100 * rank + bucket);
  return torch::randn({replica.sums.gradients().flat(bucket).numel()}, random) *
         std::pow(10.F, static_cast<float>(rank));
}

/// As partial sums of the replica are.
at::Tensor rounded(const Replica& replica, const at::Tensor& x) {
  return replica.dtype == Dtype::kBf16 ? x.to(at::kBFloat16).to(at::kFloat) : x;
}

/// The sum over `count` ranks from `first`, by the balanced tree.
at::Tensor sum(const Replica& replica, int first, int count, int bucket) {
  if (count == 1) return rounded(replica, part(replica, first, bucket));
  int left = 1;
  while (2 * left < count) left *= 2;
  return rounded(replica, sum(replica, first, left, bucket) +
                              sum(replica, first + left, count - left, bucket));
}

void fill(Replica& replica, int rank) {
  replica.sums.begin_step();
  for (int b = 0; b < replica.num_buckets; ++b) {
    replica.sums.gradients().flat(b).copy_(part(replica, rank, b));
  }
}

// Buckets are complete in another order on each replica; the sums are started in one order.
TEST(Reducer, SumsByTheTreeWhateverTheOrderOfBuckets) {
  for (const int num_replicas : {2, 3, 4}) {
    test::run(num_replicas, [&](Replica& replica, collectives::Group& group, int rank) {
      fill(replica, rank);
      std::vector<int> order(replica.num_buckets);
      std::iota(order.begin(), order.end(), 0);
      Reducer reducer(replica.sums, replica.store.map(), std::vector<bool>(replica.num_buckets),
                      group);
      reducer.begin_step();
      for (const int bucket : order) reducer.expect(bucket);
      std::rotate(order.begin(), order.begin() + rank, order.end());
      for (const int bucket : order) reducer.on_sum(bucket);
      for (const int bucket : order) {
        transport::test::wait_for(reducer.work(bucket));
        EXPECT_TRUE(torch::equal(replica.sums.gradients().flat(bucket),
                                 sum(replica, 0, num_replicas, bucket)))
            << "bucket " << bucket << " of " << num_replicas << " replicas";
      }
    });
  }
}

/// Sums buckets of bf16 gradients, of shards alone or whole, and expects this replica's part.
void expect_rounded_sums(Replica& replica, collectives::Group& group, bool is_scattered) {
  Reducer reducer(replica.sums, replica.store.map(),
                  std::vector<bool>(replica.num_buckets, is_scattered), group);
  const int rank = group.group_rank();
  fill(replica, rank);
  reducer.begin_step();
  for (int bucket = 0; bucket < replica.num_buckets; ++bucket) {
    reducer.expect(bucket);
    reducer.on_sum(bucket);
    transport::test::wait_for(reducer.work(bucket));
    reducer.take(bucket);
    const at::Tensor expected = sum(replica, 0, group.size(), bucket);
    const auto mine = [&](const at::Tensor& flat) {
      const layout::Shard& shard =
          replica.store.map().buckets[bucket].shards[is_scattered ? rank : 0];
      return is_scattered ? flat.slice(0, shard.begin_elements, shard.end_elements) : flat;
    };
    EXPECT_TRUE(torch::equal(mine(replica.sums.gradients().flat(bucket)), mine(expected)))
        << "bucket " << bucket << " of " << group.size() << " replicas";
  }
}

// Every partial sum of the tree is rounded, the whole too; what is sent is half as long.
TEST(Reducer, SumsInBf16RoundEveryPartialSum) {
  for (const int num_replicas : {2, 3, 4}) {
    const auto body = [&](Replica& replica, collectives::Group& group, int /*rank*/) {
      for (const bool is_scattered : {false, true}) {
        expect_rounded_sums(replica, group, is_scattered);
      }
      EXPECT_TRUE(std::ranges::all_of(group.flight().operations,
                                      [](const auto& one) { return one.dtype == Dtype::kBf16; }));
    };
    test::run(num_replicas, body, Dtype::kBf16);
  }
}

// Complete buckets wait for those before them: started in another order than on other replicas,
// they would be summed with the wrong ones.
TEST(Reducer, StartsABucketOnceAllBeforeItAreComplete) {
  std::latch is_seen(1);
  test::run(2, [&](Replica& replica, collectives::Group& group, int rank) {
    fill(replica, rank);
    Reducer reducer(replica.sums, replica.store.map(), std::vector<bool>(replica.num_buckets),
                    group);
    reducer.begin_step();
    for (const int bucket : {2, 0, 1}) reducer.expect(bucket);
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
      EXPECT_TRUE(torch::equal(replica.sums.gradients().flat(bucket), sum(replica, 0, 2, bucket)));
    }
  });
}

using test::Replica;

TEST(ReplicaCheck, EqualReplicasPass) {
  test::run(4, [](Replica& replica, collectives::Group& group, int /*rank*/) {
    attach_value_hashes(replica.store, group);
    EXPECT_NO_THROW(transport::test::wait_for(group.barrier()));
  });
}

// One bit of any bucket is enough.
TEST(ReplicaCheck, NamesTheReplicaThatDiffersOnAllRanks) {
  const int num_buckets = Replica().num_buckets;
  for (const int bucket : {0, num_buckets - 1}) {
    test::run(4, [&](Replica& replica, collectives::Group& group, int rank) {
      if (rank == 2) {
        *static_cast<char*>(replica.store.flat_values(bucket).mutable_data_ptr()) ^= 1;
      }
      attach_value_hashes(replica.store, group);
      try {
        transport::test::wait_for(group.barrier());
        ADD_FAILURE() << "rank " << rank << " saw nothing";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
        EXPECT_EQ(error.context().peer, 2);
        EXPECT_THAT(error.what(), testing::HasSubstr("rank 2 differs from the others"));
      }
    });
  }
}

using test::Replica;

TEST(SharedMemory, CountsAsTensorsMemory) {
  memory::install_block_allocator();
  test::run(1, [](Replica& /*replica*/, collectives::Group& group, int /*rank*/) {
    const std::int64_t before = memory::memory_use().live_bytes;
    {
      const at::Tensor flat = memory_of(group)(1 << 20);
      EXPECT_EQ(flat.nbytes(), 1U << 20);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.data_ptr()) % 64, 0U);
      EXPECT_EQ(flat.count_nonzero().item<std::int64_t>(), 0);
      EXPECT_GE(memory::memory_use().live_bytes, before + (1 << 20));
    }
    EXPECT_LT(memory::memory_use().live_bytes, before + (1 << 20));
  });
}

}  // namespace

}  // namespace trireme::parameters
