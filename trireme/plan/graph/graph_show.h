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

/// What differs between two recordings of what should be one model, in words, as far as it is part
/// of `graph_sha256`: parameters, buffers, inputs and losses by name, then nodes in execution order
/// up to the first whose operator is another.
///
///     parameter 'head.weight': f32[10, 8] -> f32[12, 8]
///     node 4 'h/dropout': aten::dropout 0.1 -> 0.2
///
/// Empty where nothing is found. Cost linear in the graphs.
std::vector<std::string> differences(const Graph& before, const Graph& now);

/// The first `most` of them in one line; `and 7 more` after that.
std::string differences_text(const std::vector<std::string>& differences, std::size_t most = 3);

}  // namespace trireme::graph
