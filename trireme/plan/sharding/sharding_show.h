#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/shard_forecast.h"

namespace trireme::sharding {

/// A table for people: parts, their sums, what they save.
///
///     part                  sums forward  backward  Mflop  summed   saves
///     blocks.0.down/matmul             1         1   12.6  2.0 KiB  0.1 ms
///
/// Of tiles:
///
///     part         values  halos  sums forward  backward  Mflop  taken of others    summed     saves
///     stem/conv2d      60     14             9        21   12.3         12.0 KiB  40.0 KiB  8.100 ms
std::string show(const Sharding& sharding);

/// And what is split of parameters: dimension, blocks, bytes of all parameters in a shard and in the whole model.
///
/// graph   the one that it was found for.
std::string show(const Sharding& sharding, const graph::Graph& graph);

/// Two lines: a microbatch in shards beside the whole model's.
std::string show(const ShardForecast& forecast, int num_shards);

}  // namespace trireme::sharding
