#include "trireme/engine/data_parallel/replica_check.h"

#include <gmock/gmock.h>

#include "tests/engine/data_parallel/replicas.h"

namespace trireme::data_parallel {
namespace {

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

}  // namespace
}  // namespace trireme::data_parallel
