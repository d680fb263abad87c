#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::measure {

/// By value id: whether its gradient goes to parameters alone. So do those of parameters and of
/// what is computed from them without the batch (`weight.t()`, a position bias): no stage before
/// waits for it, it belongs to the weight part W of a backward.
using WeightValues = std::vector<bool>;

/// Cost linear in nodes and arguments.
WeightValues weight_values(const graph::Graph& graph);

}  // namespace trireme::measure
