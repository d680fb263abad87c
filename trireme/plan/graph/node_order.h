#pragma once

#include <span>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// By position: those of the nodes that must run later than this one, whatever the order of nodes, if a run is to give the
/// same bits; ascending, without repeats. What follows from others may be left out.
///
///  * a value is made before it is used;
///  * uses of a value that wants a gradient, a parameter's too, keep their order: gradients are added up from the last use to
///    the first;
///  * so do nodes that take such a value through copies of `copied`, each of which is a use of it;
///  * so do nodes that take or make values of memory that is written, or addressed by absolute offsets.
///
/// Random nodes draw by their ids, buffers are written, losses added up by their own order: nothing else depends on it.
///
/// graph    one that passes `check`.
/// copied   ids of nodes that are copied to their consumers (copy_to_consumers.h) once the order is made.
/// Cost     linear in nodes and arguments, and for copies in the values behind them.
std::vector<std::vector<int>> later_nodes(const Graph& graph, std::span<const NodeId> copied = {});

/// Why nodes cannot run in this order, for people; empty where they can.
///
/// order    ids of nodes.
/// copied   as for `later_nodes`.
std::string why_not_in_order(const Graph& graph, std::span<const NodeId> order,
                             std::span<const NodeId> copied = {});

/// The graph whose nodes run in this order, and so the graphs of other lengths. Ids and values stay; nothing is copied.
///
/// Errors   kInvalidArgument with `why_not_in_order`.
Graph reordered(const Graph& graph, std::span<const NodeId> order,
                std::span<const NodeId> copied = {});

/// Likewise of the graph itself, and unchecked: `order` is known to be one in which its nodes can run. No node is copied.
void put_in_order(Graph& graph, std::span<const NodeId> order);

}  // namespace trireme::graph
