#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Largest coefficient of a dimension, stride or batch-dependent integer, and largest number of
/// elements of a parameter, buffer or constant.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

/// Deepest nesting of lists in an argument.
inline constexpr int kMaxListDepth = 16;

/// Proves the invariants that all passes and executors rely on; everything else in this room
/// expects a graph that has passed.
///
///  * values: each has one source, and the entry of `inputs`, `parameters`, `buffers`, `constants`
///    or `nodes` that its source names; shape and strides have the same rank; a storage id.
///  * nodes: ids are unique; inputs are produced before their use; outputs add up to `output_lists`
///    and are new or inputs that are handed on; `writes` are inputs, and no memory of parameters,
///    constants or read-only buffers; no absolute offset into a trainable parameter; a copy follows
///    its original.
///  * inputs: `batch_dim` alone grows with the batch; a step scalar is 0-dim.
///  * microbatch: a graph that holds for one size has fixed shapes, and inputs of that size.
///  * parameters, buffers: names and aliases unique over both; fixed shapes; a trainable
///    parameter shares its memory with no other parameter or buffer.
///  * constants: fixed shapes, bytes to match.
///  * shorter: other lengths, none longer; nothing else differs but numbers.
///  * losses: at least one in a training graph; 0-dim outputs of nodes, which need a gradient there
///    if their coefficient is not 0; a weight's ancestors contain no parameter, no random node and
///    no node that writes to a buffer.
///
/// Errors   kInvalidArgument, naming the node or value, the field, expected and actual. Any content
///          is safe to pass in.
/// Cost     linear in nodes, arguments and values.
void check(const Graph& graph);

/// Refuses to run a graph on `num_samples` samples that holds for another number alone
/// (Graph::microbatch): kInvalidArgument with both numbers.
void check_samples(const Graph& graph, std::int64_t num_samples);

namespace internal {

// The parts of `check`, each relying on the ones before it.
void check_values(const Graph& graph);      ///< Values by themselves and where they come from.
void check_boundaries(const Graph& graph);  ///< Inputs, parameters, buffers, constants.
void check_nodes(const Graph& graph);
void check_losses(const Graph& graph);
void check_outputs(const Graph& graph);

[[noreturn]] void fail_check(const std::string& subject, const std::string& problem);
bool is_moderate(std::int64_t number);   ///< Within kMaxExtent.
std::string describe(const Node& node);  ///< `node 12 'encoder/linear' (aten::linear)`

}  // namespace internal

}  // namespace trireme::graph
