#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

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
