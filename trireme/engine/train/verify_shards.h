#pragma once

#include <vector>

#include "trireme/engine/train/verify_plan.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// How trainings in shards are compared.
struct ComparedShards {
  ComparedSteps steps;
  BatchLayout batch;
  sharding::ShardingOptions sharding;  ///< Its microbatch is the batch's.
  sharding::SplitKind kind = sharding::SplitKind::kTensors;
};

/// On every rank; the comparison with the model on rank 0 alone.
struct ShardVerification {
  sharding::Sharding sharding;
  double shard_step_ms =
      0;  ///< Of this rank, with the others; median of all steps but the first, which takes longer.
  double model_step_ms = 0;  ///< Of the whole model on rank 0 alone.
  std::vector<Comparison> comparisons;
};

/// Trains the workload by ranks with as many of the shards each, and compares them bit by bit with all shards in one process:
/// losses, gradients and weights, those of split parameters by part. That process is compared with the whole model: losses to
/// 1e-5, first gradients to 1e-5 of the norm of all gradients, weights to 1e-5 of that of all weights under sgd.
///
/// Errors   kInvalidArgument where ranks do not divide the shards into equal powers of two, nothing can be split, or the
///          optimizer takes norms (of gradients, to clip them; of parameters), which shards would have to sum.
/// Every rank of the world calls it.
ShardVerification verify_shards(const collectives::World& world, const MakeWorkload& make_workload,
                                const ComparedShards& options);

}  // namespace trireme::train
