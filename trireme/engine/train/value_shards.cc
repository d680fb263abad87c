#include "trireme/engine/train/value_shards.h"

#include "trireme/base/check.h"
#include "trireme/engine/parameters/replica_sums.h"

namespace trireme::train {

using schedule::OperationKind;

ValueShards::ValueShards(const parameters::ParameterStore& store, collectives::Group& replicas,
                         const transport::WatchOptions& watch)
    : store_(store), replicas_(replicas), watch_(watch) {}

ValueShards::~ValueShards() {
  for (const auto& [bucket, gather] : gathers_) parameters::wait_for_end(*gather, replicas_);
}

bool ValueShards::is_about(const schedule::Operation& operation) {
  return operation.kind == OperationKind::kUnshard || operation.kind == OperationKind::kAwait ||
         operation.kind == OperationKind::kReshard;
}

void ValueShards::run(const schedule::Operation& operation, const ErrorContext& place) {
  switch (operation.kind) {
    case OperationKind::kUnshard:
      return unshard(operation.item);
    case OperationKind::kAwait:
      return await(operation.item, place);
    case OperationKind::kReshard:
      return reshard(operation.item);
    default:
      TRIREME_CHECK(false, "an operation that is not about shards");
  }
}

void ValueShards::unshard_now(int bucket, const ErrorContext& place) {
  unshard(bucket);
  await(bucket, place);
}

void ValueShards::unshard(int bucket) {
  parameters::ShardedBucket& shards = *store_.sharded(bucket);
  const at::Tensor& whole = shards.make_whole();
  gathers_[bucket] =
      parameters::gather_shards(shards.shard(), whole, store_.map().buckets[bucket], replicas_);
}

void ValueShards::await(int bucket, const ErrorContext& place) {
  const auto gather = gathers_.find(bucket);
  TRIREME_CHECK(gather != gathers_.end(), "values are awaited that nobody has asked for");
  transport::await(collectives::group_work(*gather->second, replicas_), watch_, place);
  gathers_.erase(gather);
  store_.sharded(bucket)->show();
}

void ValueShards::reshard(int bucket) {
  TRIREME_CHECK(!gathers_.contains(bucket), "values are dropped that are still on their way");
  store_.sharded(bucket)->drop();
}

}  // namespace trireme::train
