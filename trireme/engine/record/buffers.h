#pragma once

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Decides from its uses when changes of each buffer become visible (graph::BufferPolicy).
///
/// kBatchNorm   all its nodes are batch norms in training, as running mean or variance.
/// kCounter     integer; all its nodes add a constant to it in place.
/// kEager       it, or memory it shares, is written in another way.
void set_buffer_policies(graph::Graph& graph);

}  // namespace trireme::record
