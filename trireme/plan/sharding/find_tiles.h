#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"

namespace trireme::sharding {

/// Finds which tensors to split along the first spatial dimension, rows of images and slices of volumes: spatial shards.
///
/// Convolutions, pools and upsamplings run on tiles of at least `least` rows, with the operators between them that treat each row by
/// itself; halos go between shards (tiles.h), norms sum their statistics over them, and what runs whole takes whole values, put
/// together. Every number of rows that the graph has is tried as `least`, and the one taken that saves most: (1 - 1/S) of the time
/// of convolutions, less halos, sums, and the sums of weights' gradients. So the upper levels of a U-Net are split and the
/// lower ones are not.
///
/// options   as of find_sharding.
/// Returns   kind kTiles; one part, or none where nothing saves time.
/// Errors    those of find_sharding; kInvalidArgument where samples differ in length.
/// Cost      numbers of rows times nodes and arguments.
Sharding find_tiles(const graph::Graph& graph, const ShardingOptions& options);

}  // namespace trireme::sharding
