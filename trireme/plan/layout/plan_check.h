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
///  * roles: one is `train`; a mesh position for every rank, no rank twice; the
///    pipeline divides the stages and the data replicas the lanes;
///  * stages cover all nodes in order, none is empty, every cut between them is allowed;
///  * copies are of earlier nodes that need no gradient and no trainable parameter, neither write
///    nor read what is written meanwhile;
///  * nothing that does not work yet is asked for: `recompute`, `offload`, shards, roles beside
///    `train`;
///  * tie owners are stages that use the parameter.
///
/// graph    one that passes `graph::check`.
/// Errors   kInvalidArgument with expected, actual and what to do. Any plan is safe to pass in.
/// Cost     linear in nodes, arguments and the plan.
void check(const Plan& plan, const std::string& graph_sha256, const graph::Graph& graph);

}  // namespace trireme::layout
