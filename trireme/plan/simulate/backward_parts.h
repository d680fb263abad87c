#pragma once

#include <cstdint>
#include <set>
#include <unordered_set>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::simulate {

/// When a node's backward runs, where a stage's is in two parts (engine/program/split_backward.h).
enum class BackwardPart : std::uint8_t {
  kFirst,
  kBoth,    ///< A matrix product or convolution: the gradient of its parameter in the second.
  kSecond,  ///< It leads to no received value, and nothing that does takes what it makes.
};

/// Storages of the parameters that are trained.
std::unordered_set<int> parameter_storages(const graph::Graph& graph);

/// By place in `positions`.
///
/// parameters   as `parameter_storages` of the graph.
/// positions    of the stage's nodes, in its order of execution.
/// received     values with a gradient.
std::vector<BackwardPart> backward_parts(const graph::Graph& graph,
                                         const std::unordered_set<int>& parameters,
                                         const std::vector<int>& positions,
                                         const std::set<graph::ValueId>& received);

}  // namespace trireme::simulate
