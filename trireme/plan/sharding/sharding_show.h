#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"

namespace trireme::sharding {

/// A table for people: parts, their sums, what they save.
///
///     part                  sums forward  backward  Mflop  summed   saves
///     blocks.0.down/matmul             1         1   12.6  2.0 KiB  0.1 ms
std::string show(const Sharding& sharding);

/// And what is split of parameters: dimension, blocks, bytes of all parameters in a shard and in the whole model.
///
/// graph   the one that it was found for.
std::string show(const Sharding& sharding, const graph::Graph& graph);

}  // namespace trireme::sharding
