#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Where the graph may be split: element c, for c in 1 .. n-1, tells whether a stage may end with
/// `nodes[c-1]` and the next begin with `nodes[c]`. Elements 0 and n are false.
///
/// A cut is forbidden
///  * between the first production of a storage, by a node or as a batch input, and an in-place
///    write to it: gradients would be wrong;
///  * between the first production of a storage and an `aten::as_strided` of it, whose offsets
///    count from the storage's start;
///  * between the uses of a parameter that has a single site for more than kMaxUseSites uses;
///  * between the nodes that touch the same buffer, unless it is read-only;
///  * between a write to a batch input or constant and a later use of it;
///  * where a view that was made before a write to its memory is used beyond the cut, and another
///    value of that memory too: their gradients would be added in another order.
///
/// graph    one that passes `check`.
/// Cost     linear in nodes and arguments.
std::vector<bool> allowed_cuts(const Graph& graph);

/// Why no cut may fall at `cut`, naming the storage's value, parameter or buffer and the nodes;
/// empty where it may.
std::string why_forbidden(const Graph& graph, int cut);

}  // namespace trireme::graph
