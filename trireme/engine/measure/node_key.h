#pragma once

#include <cstdint>
#include <string>

#include "trireme/engine/measure/weight_values.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::measure {

/// What a node's cost depends on where the batch has `batch` samples, as text for people. Nodes
/// with the same key are measured once:
///
///     aten::addmm(f32[24] weight, f32[4, 12] gradient, f32[12, 24]{1, 12} weight, 1, 1)
///     aten::select.int(f32[4, 7, 16] gradient) -> f32[4, 16]{112, 1}
///
/// Operator, tensors (dtype, shape, strides where not contiguous, which gradient is wanted), other
/// arguments, gradient mode and autocast. Arguments of a view do not matter, but what comes out
/// does.
///
/// weights   of the graph: those are marked `weight`, others that want a gradient `gradient`.
std::string node_key(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
                     const WeightValues& weights);

}  // namespace trireme::measure
