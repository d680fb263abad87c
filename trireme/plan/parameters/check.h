#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/parameters/parameter_map.h"

namespace trireme::parameters {

/// Proves that `map` lays out the parameters of `graph` under `plan`: hashes match; every use site
/// of every trainable parameter has one slot, in a bucket of its stage, kind and dtype; slots do
/// not overlap and are aligned; norm blocks are numbered by name; shards cover each bucket in rank
/// order with norm-block edges.
///
/// graph, plan   ones that pass their checks.
/// Errors        kInvalidArgument, naming bucket and slot. Any map is safe to pass in.
void check(const ParameterMap& map, const graph::Graph& graph, const layout::Plan& plan);

}  // namespace trireme::parameters
