#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/part_values.h"
#include "trireme/plan/sharding/tile_rules.h"

namespace trireme::sharding {

/// Tiles of a norm, one for each shard here.
struct NormTiles {
  PartValues::Ids inputs;
  PartValues::Ids residuals;  ///< What is added after the norm; empty: nothing.
  PartValues::Ids outputs;
};

/// A batch norm or instance norm whose statistics are of the tiles of all shards (tiled_graph.h).
///
///     mean = sum over shards(sum x) / n;  d = x - mean;  variance = sum over shards(sum d d) / n
///     y    = d weight / sqrt(variance + eps) + bias       (+ residual, then ReLU, where the operator has them)
///
/// In f32 where x is f16 or bf16. Two sums forward; backward one each for mean, scale and bias.
void add_tiled_norm(PartValues& values, const graph::Node& node, const TileRule& rule,
                    const NormTiles& tiles);

}  // namespace trireme::sharding
