#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// `8`, `B`, `4B`, `4B-1`: a size with the batch as B.
std::string to_text(const Size& size);

/// `[4B, 8]`.
std::string to_text(const std::vector<Size>& shape);

/// `aten::add.Tensor`, `opaque:sampler`.
std::string operator_text(const Node& node);

/// The graph as tables for people: a summary; inputs; parameters with their other names and number
/// of sites; buffers with their policy; losses; nodes with position, id, name, operator and output
/// shapes. Marks of a node: `|` a cut may fall before it, `r` random, `w` writes, `v` view, `n` no
/// gradients.
std::string show(const Graph& graph);

}  // namespace trireme::graph
