#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::measure {

/// What a node's cost depends on where the batch has `batch` samples, as text for people. Nodes
/// with the same key are measured once:
///
///     aten::linear(f32[4, 24] gradient, f32[24, 24] parameter gradient, f32[24] parameter gradient)
///     aten::select.int(f32[4, 7, 16] gradient) -> f32[4, 16]{112, 1}
///
/// Operator, tensors (dtype, shape, strides where not contiguous, whether a parameter, whether a
/// gradient is wanted), other arguments, gradient mode and autocast. Arguments of a view do not
/// matter, but what comes out does.
std::string node_key(const graph::Graph& graph, const graph::Node& node, std::int64_t batch);

}  // namespace trireme::measure
