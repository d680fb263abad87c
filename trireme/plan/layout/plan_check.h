#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Largest number of samples of a step.
inline constexpr std::int64_t kMaxBatch = std::int64_t{1} << 22;

/// Throws kInvalidArgument, with what to do, unless b divides B, G divides B / b, and all are at
/// least 1 and B at most kMaxBatch. Part of `check`.
void check_batch(const BatchLayout& batch);

/// Proves that `plan` can be run on `graph`.
///
///  * it is of this graph: its hash is `graph_sha256`;
///  * batch: b divides B, G divides B / b;
///  * roles: one is `train`; a rank at every mesh position. A rank runs one position of the pipeline, and there one
///    replica or several that are neighbours, as many as each other rank there. The data replicas divide the lanes;
///  * stages cover all nodes in order, none is empty, every cut between them is allowed;
///  * copies are of earlier nodes that need no gradient and no trainable parameter, neither write
///    nor read what is written meanwhile;
///  * stages that recompute can (why_not_recomputed); their regions begin at allowed cuts, in order;
///  * nothing that does not work yet is asked for: tensor shards, roles beside
///    `train`, shards of state where ranks run several replicas;
///  * tie owners are stages that use the parameter.
///
/// graph    one that passes `graph::check`.
/// Errors   kInvalidArgument with expected, actual and what to do. Any plan is safe to pass in.
/// Cost     linear in nodes, arguments and the plan.
void check(const Plan& plan, const std::string& graph_sha256, const graph::Graph& graph);

/// The graph in whose positions the stages of `plan` count (planned_graph), where `check` proves that it can be run on that.
///
/// The hash is compared before anything else: node ids of another graph mean nothing here.
///
/// Errors   those of `check` and `planned_graph`.
graph::Graph checked_graph(const graph::Graph& recorded, const Plan& plan);

/// Why a stage's forward cannot run twice for a microbatch: it changes memory that it has not made, or
/// has opaque code. Empty where it can.
/// Statistics of norms and counters are folded in at the end of a step, once.
///
/// graph   planned; the plan's ranges and copies pass `check`.
std::string why_not_recomputed(const graph::Graph& graph, const Plan& plan, int stage);

}  // namespace trireme::layout
