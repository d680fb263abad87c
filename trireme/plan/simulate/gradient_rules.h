#pragma once

#include <string_view>

#include "trireme/plan/graph/graph.h"

namespace trireme::simulate {

/// Whether the gradient of `input` that the node's backward gives is the memory of its output's
/// gradient: views of all elements, and sums without broadcast.
bool hands_on_gradient(const graph::Graph& graph, const graph::Node& node, graph::ValueId input);

/// Whether the backward of an operator computes gradients of a value and of a parameter apart from each other
/// (engine/program/split_backward.cc).
bool computes_apart(std::string_view op);

}  // namespace trireme::simulate
